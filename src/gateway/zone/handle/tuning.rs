//! Share of a zone's settings for each of its supervisors.

use std::num::NonZeroUsize;
use std::sync::Arc;

use limit::NewKeyBudget;

use crate::zone::arrivals;
use crate::zone::overrides::Overrides;
use crate::zone::store_link::Sharing;
use crate::zone::supervisor::Tuning;

/// Returns a supervisor's share of its zone's settings.
///
/// `max_keys` is divided evenly, with at least one for each supervisor.
pub(super) fn tuning(
    zone: &Arc<config::Zone>,
    (shard, shards): (usize, usize),
    sharing: Option<Sharing>,
    new_keys: &Arc<NewKeyBudget>,
    overrides: Arc<Overrides>,
) -> Tuning {
    let (all, more) = (zone.max_keys.get() / shards, zone.max_keys.get() % shards);
    let max_keys = NonZeroUsize::new(all + usize::from(shard < more)).unwrap_or(NonZeroUsize::MIN);
    Tuning {
        zone: Arc::clone(zone),
        rate: overrides.zone_rate().unwrap_or(zone.rate),
        max_keys,
        new_keys: Arc::clone(new_keys),
        most_arrivals: arrivals::MAX_ARRIVALS / shards,
        overrides,
        sharing,
    }
}
