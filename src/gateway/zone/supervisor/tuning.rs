//! Settings of a supervisor: its share of the parameters of its zone.

use std::num::NonZeroUsize;
use std::sync::Arc;

use limit::{NewKeyBudget, Rate};

use crate::zone::overrides::Overrides;
use crate::zone::store_link::Sharing;

/// Settings of a supervisor. They can change while it runs.
#[derive(Clone)]
pub struct Tuning {
    /// Settings of the zone. The algorithm never changes.
    pub zone: Arc<config::Zone>,
    /// Rate of keys without a plan: the rate of the zone or of its override.
    pub rate: Rate,
    /// Upper bound of the keys that this supervisor may remember.
    pub max_keys: NonZeroUsize,
    /// Budget for new keys that all supervisors of the zone share.
    pub new_keys: Arc<NewKeyBudget>,
    /// Overrides in force.
    pub overrides: Arc<Overrides>,
    /// Upper bound of the arrivals kept for a replay. Never changes.
    pub max_arrivals: usize,
    /// Store of the zone; `None` if it is kept in memory.
    pub(in crate::zone) sharing: Option<Sharing>,
}
