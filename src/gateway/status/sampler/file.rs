//! What a sample says of the file: its last change, and what of it is probably a mistake.

use std::time::Duration;

use config::{FileState, LostKeys};
use limit::Moment;

use crate::status::views::{ChangeSample, LostKeysSample, Plain};

/// For how long after a reload a warning that begins says what it changed.
const RECENT_CHANGE: Duration = Duration::from_secs(120);
/// For how long it is said that a plan lost keys.
const LOST_LATELY: Duration = Duration::from_secs(600);

/// The last change in force, if it is recent.
pub(super) fn change(state: &FileState, now: Moment) -> Option<ChangeSample> {
    let change = state.last_change.as_ref()?;
    let ago = now.since(change.at);
    (ago <= RECENT_CHANGE).then(|| ChangeSample {
        ago: ago.as_secs_f64(),
        what: change.what.iter().map(|text| Plain::new(text)).collect(),
    })
}

/// The plans that lost keys in the last change, if it is recent.
pub(super) fn lost_keys(state: &FileState, now: Moment) -> Vec<LostKeysSample> {
    let Some(change) = &state.last_change else {
        return Vec::new();
    };
    let ago = now.since(change.at);
    if ago > LOST_LATELY {
        return Vec::new();
    }
    let sample = |keys: &LostKeys| LostKeysSample {
        zone: Plain::new(&keys.zone),
        plan: Plain::new(&keys.plan),
        file: keys.file.as_deref().map(Plain::new),
        lost: keys.lost as u64,
        had: keys.had as u64,
        ago: ago.as_secs_f64(),
    };
    change.lost_keys.iter().map(sample).collect()
}
