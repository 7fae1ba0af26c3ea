//! Replays the last arrivals at a zone with other numbers, and changes nothing.
//!
//! An *arrival* is a request as the zone recorded it: its time, its key and its limit. The replay
//! decides each arrival again, and counts how many requests would wait or be rejected.

use config::Settings;
use limit::Moment;

use crate::http::gateway::Gateway;
use crate::time::clock;
use crate::zone::Arrival;

mod other_numbers;
mod rates;
mod replayed;

pub(crate) use self::other_numbers::OtherNumbers;
pub(super) use self::rates::advise;
pub(crate) use self::replayed::replay;

/// Number of requests that are replayed between two looks at the clock.
const STEP: usize = 1_000;

/// Returns the settings in force, with the overridden rate of the zone with this index, if any.
pub(crate) fn in_force(gateway: &Gateway, zone: usize) -> Settings {
    let mut settings = gateway.settings().clone();
    let overrides = gateway.zone(zone).overrides();
    let rate = overrides.zone.as_ref().and_then(|set| set.values.rate);
    if let (Some(rate), Some(zone)) = (rate, settings.zones.get_mut(zone)) {
        zone.rate = rate;
    }
    settings
}

/// Replays each arrival. Returns their number; `None` if the replay is not done by `deadline`.
fn replay_all<'a>(
    arrivals: impl ExactSizeIterator<Item = Arrival<'a>>,
    deadline: Moment,
    mut replay: impl FnMut(Arrival<'a>),
) -> Option<u64> {
    let requests = arrivals.len() as u64;
    for (nth, arrival) in arrivals.enumerate() {
        if nth % STEP == 0 && clock::now() >= deadline {
            return None;
        }
        replay(arrival);
    }
    Some(requests)
}
