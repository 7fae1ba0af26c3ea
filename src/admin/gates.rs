//! The gates of origins, as the API and the live samples show them.

use std::collections::BTreeMap;

use super::views::{self, Plain};
use crate::http::upstream::{BackingOff, BlockedBy, BlockedTimes, OriginGate};
use crate::observe::metrics::GateRejected;

/// Rejections since the start, by reason.
pub(super) fn rejections(gate: &OriginGate) -> BTreeMap<Plain, u64> {
    let count = |why: GateRejected| (why.label().into(), gate.metrics().rejected(why));
    GateRejected::ALL.into_iter().map(count).collect()
}

/// How long any request has waited, by cause.
pub(super) fn blocked_seconds(times: &BlockedTimes) -> BTreeMap<Plain, f64> {
    let causes = BlockedBy::ALL.into_iter().zip(times);
    let seconds = causes.map(|(by, time)| (by.label().into(), time.as_secs_f64()));
    seconds.collect()
}

/// Why a gate backs off.
pub(super) fn backing_off(why: &BackingOff) -> views::BackingOff {
    views::BackingOff {
        reason: why.reason.label().into(),
        text: Plain::new(&why.text),
    }
}
