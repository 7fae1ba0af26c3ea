//! What a gate says of itself.

use limit::{Class, Lowered, Rate};

use super::{
    BlockedTimes, GateOutage, GateOverride, GateSharing, KeyAtGate, OriginGate, PlaceSharing,
};
use crate::time::clock;
use crate::zone::StoreRefusal;

/// The state of a gate, for people and metrics.
#[derive(Clone, Debug)]
pub struct GateState {
    /// Requests that wait.
    pub depth: usize,
    /// Requests at the origin.
    pub in_flight: usize,
    /// Requests that have left it since the gateway started.
    pub departures: u64,
    /// The pace now in force, of all gateways that share it.
    pub rate: Option<Rate>,
    /// How it is shared with other gateways; `None`: it is not.
    pub sharing: Option<GateSharing>,
    /// How its places are shared with other gateways; `None`: they are not.
    pub places: Option<PlaceSharing>,
    /// Why its back-off does not learn from other gateways; `None`: it does, or there are none.
    pub why_backs_off_alone: Option<StoreRefusal>,
    /// The places now in force.
    pub max_in_flight: Option<usize>,
    /// What is not as in the file for a while.
    pub overridden: Option<GateOverride>,
    /// What is lower than in the file, and why.
    pub lowered: Lowered,
    /// How long requests have waited for each cause.
    pub blocked: BlockedTimes,
    /// The present outage; `None` if the origin can be reached.
    pub outage: Option<GateOutage>,
    /// The classes of the file with their waiters; empty if it has none.
    pub classes: Vec<(Class, usize)>,
    /// The keys with the most waiters, and how many, deepest first.
    pub deepest: Vec<(KeyAtGate, usize)>,
}

impl OriginGate {
    /// Its present state, with so many of the deepest keys.
    pub fn state(&self, keys: usize) -> GateState {
        let mut state = self.lock();
        let now = clock::now();
        state.back_off(&self.metrics, now);
        state.note_blocked(now);
        let (limits, lowered) = state.shown();
        let sharing = state.sharing();
        let places = state.place_sharing();
        let learns = state.backing_off.as_ref().and_then(|it| it.shared.as_ref());
        let why_backs_off_alone = learns.and_then(|it| it.caller.refusal.clone());
        let overridden = state.overridden.as_deref().cloned();
        let blocked = state.blocked.times();
        let (depth, in_flight) = (state.gate.depth(), state.gate.in_flight());
        let departures = state.gate.departures();
        let classes = state.gate.classes();
        let named = classes.filter(|(class, _)| !class.name.is_empty());
        let classes = named.map(|(class, depth)| (class.clone(), depth)).collect();
        drop(state);
        GateState {
            depth,
            in_flight,
            departures,
            rate: limits.rate,
            sharing,
            places,
            why_backs_off_alone,
            max_in_flight: limits.max_in_flight,
            overridden,
            lowered,
            blocked,
            outage: self.outage.borrow().clone(),
            classes,
            deepest: self.deepest(keys),
        }
    }

    /// The keys with the most waiters, deepest first, at most so many.
    ///
    /// With many keys the lock is let go again and again, and departures go on meanwhile.
    fn deepest(&self, most: usize) -> Vec<(KeyAtGate, usize)> {
        const STEPS: usize = 1000;
        let mut deepest: Vec<(KeyAtGate, usize)> = Vec::new();
        let mut next = Some((0, 0)).filter(|_| most > 0);
        while let Some(from) = next {
            next = self.lock().gate.depths(from, STEPS, |key, depth| {
                let at = deepest.partition_point(|(_, known)| *known >= depth);
                // Between two parts a key may have left and come again.
                let is_known = deepest.iter().any(|(known, _)| known == key);
                if at < most && !is_known {
                    deepest.truncate(most - 1);
                    deepest.insert(at, (key.clone(), depth));
                }
            });
        }
        deepest
    }
}
