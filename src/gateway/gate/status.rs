//! Status of a gate, for the API, the samples and the metrics.
//!
//! `report` makes JSON and metrics of it.

use limit::{Class, Lowered, Rate};

use super::{
    BlockedTimes, GateOutage, GateOverride, GateSharing, KeyAtGate, OriginGate, PermitSharing,
};
use crate::time::clock;
use crate::zone::StoreError;

/// Status of a gate at one instant.
#[derive(Clone, Debug)]
pub struct GateStatus {
    /// Number of waiters.
    pub depth: usize,
    /// Number of departures since the gateway started.
    pub departures: u64,
    /// Effective rate. If several gateways share it, the rate of all together.
    pub rate: Option<Rate>,
    /// Status of the shared rate; `None`: the rate is not shared.
    pub sharing: Option<GateSharing>,
    /// Status of the shared permits; `None`: the permits are not shared.
    pub permits: Option<PermitSharing>,
    /// Reason for which the back-off is not shared, though the file asks for it; `None`: there is
    /// none.
    pub why_backs_off_alone: Option<StoreError>,
    /// Effective number of permits.
    pub max_in_flight: Option<usize>,
    /// Override in force.
    pub overridden: Option<GateOverride>,
    /// Limits that the back-off has lowered, with the reason.
    pub lowered: Lowered,
    /// Time for which the gate was blocked, by cause.
    pub blocked: BlockedTimes,
    /// Present outage; `None` if the origin can be reached.
    pub outage: Option<GateOutage>,
    /// Configured classes with their waiters; empty if there are none.
    pub classes: Vec<(Class, usize)>,
    /// Keys with the most waiters and their numbers of waiters, deepest first.
    pub deepest: Vec<(KeyAtGate, usize)>,
}

impl OriginGate {
    /// Returns the present status, with at most `keys` of the deepest keys.
    pub fn status(&self, keys: usize) -> GateStatus {
        let deepest = self.deepest(keys);
        let mut state = self.lock();
        let now = clock::now();
        state.back_off(&self.metrics, now);
        state.note_blocked(now);
        let limits = state.limits_to_show();
        let backing_off = state.backing_off.as_ref();
        let shared_backoff = backing_off.and_then(|it| it.shared.as_ref());
        let classes = state.gate.classes();
        // A gate without configured classes has one class without a name.
        let named = classes.filter(|(class, _)| !class.name.is_empty());
        GateStatus {
            depth: state.gate.depth(),
            departures: state.gate.departures(),
            rate: limits.rate,
            sharing: state.sharing(),
            permits: state.permit_sharing(),
            why_backs_off_alone: shared_backoff.and_then(|it| it.caller.refusal.clone()),
            max_in_flight: limits.max_in_flight,
            overridden: state.gate_override.as_deref().cloned(),
            lowered: backing_off.map_or_else(Lowered::default, |it| it.backoff.lowered()),
            blocked: state.blocked.times,
            outage: self.outage.borrow().clone(),
            classes: named.map(|(class, depth)| (class.clone(), depth)).collect(),
            deepest,
        }
    }

    /// Returns the keys with the most waiters, deepest first, at most `count`.
    ///
    /// With many keys the lock is released after each batch, so that departures go on meanwhile.
    fn deepest(&self, count: usize) -> Vec<(KeyAtGate, usize)> {
        const BATCH: usize = 1000;
        let mut deepest: Vec<(KeyAtGate, usize)> = Vec::new();
        // Where the next batch begins, as the gate has returned it; `None`: all keys were visited.
        let mut next_batch = Some((0, 0)).filter(|_| count > 0);
        while let Some(from) = next_batch {
            next_batch = self.lock().gate.depths(from, BATCH, |key, depth| {
                let rank = deepest.partition_point(|(_, known)| *known >= depth);
                // Between two batches a key may have emptied and filled again.
                let is_known = deepest.iter().any(|(known, _)| known == key);
                if rank < count && !is_known {
                    deepest.truncate(count - 1);
                    deepest.insert(rank, (key.clone(), depth));
                }
            });
        }
        deepest
    }
}
