//! Shared rate of an origin's gate: claims slots of a grid that several gateways share.
//!
//! The *grid* is the schedule of the origin's departures, in Redis (the *store*). Each gateway
//! *claims* some of its slots, and lets one request depart in each. Without the store, a gateway
//! goes on *alone*: it sends its part of the rate, without slots from the grid.
//!
//! [`limit::Claims`] decides how many slots to claim, and when. `link` sends the claims. A task
//! (`store_task`) calls the functions of [`Dialogue`] below.

mod link;

use std::num::NonZeroU32;
use std::sync::{Arc, MutexGuard};

use limit::{self, Claims, GridAnswer, Moment, Rate, Sharing, SlotCounts};

use super::store_key::{StoreKey, new_gateway};
use super::store_task::{Caller, Dialogue, SharedThing, StoreTask};
use super::{OriginGate, Queue, State};
use crate::time::clock;
use crate::zone::{StoreError, StoreHealth};
pub(super) use link::GridLink;
use link::SlotClaim;

/// State with which a gate shares its rate.
pub(super) struct SharedGrid {
    claims: Claims,
    /// Random identifier of this gate in the cluster. Kept when the store's settings change.
    gateway: u64,
    /// Rate in this gateway's file, and the instant since which the file has it.
    rate: (Rate, Moment),
    /// Record of the task that calls the store.
    caller: Caller,
}

/// Status of a shared rate, for the API and the metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct GateSharing {
    /// Whether this gateway uses its part alone: the store is out, or refuses the gate's claims.
    pub is_alone: bool,
    /// Reason for being alone; `None`: not alone, or only waiting for the other gateways.
    pub why_alone: Option<StoreError>,
    /// Part of the rate that this gateway may use, above 0 and at most 1.
    pub part: f64,
    /// Number of gateways that share the rate; `None`: not known.
    pub gateways: Option<u32>,
    /// Counts of the granted slots, by use.
    pub slots: SlotCounts,
}

impl SharedGrid {
    /// Wakes the task if a claim is due before the task wakes by itself.
    pub(super) fn wake_task(&mut self, gate: &Queue, now: Moment) {
        self.caller.wake_for(self.claims.due(gate, now));
    }
}

impl State {
    /// Returns the status of the shared rate; `None` if it is not shared.
    pub(super) fn sharing(&self) -> Option<GateSharing> {
        let grid = self.grid.as_ref()?;
        let is_alone = grid.claims.sharing() != Sharing::Grid;
        Some(GateSharing {
            is_alone,
            why_alone: grid.caller.refusal.clone().filter(|_| is_alone),
            part: grid.claims.part(),
            gateways: grid.claims.gateways().map(NonZeroU32::get),
            slots: self.gate.slot_counts(),
        })
    }

    /// Returns the part of its slots that the gate may take: the lowered rate by the whole rate.
    ///
    /// Below 1 while the back-off lowers the rate. Above 0, as a claim needs.
    fn part_of_slots(&self) -> f64 {
        let effective = self.gate.limits().rate;
        match effective.zip(self.unlowered_limits().rate) {
            Some((effective, unlowered)) => {
                let part = effective.per_second() / unlowered.per_second();
                part.clamp(f64::MIN_POSITIVE, 1.0)
            }
            None => 1.0,
        }
    }
}

impl OriginGate {
    /// Shares the rate through `store` from now on, if the origin's settings ask for it.
    ///
    /// Returns the task to start; `None` if no new task is needed.
    pub(super) fn share_slots(
        self: &Arc<Self>,
        origin: &config::Origin,
        store: Option<&Arc<StoreHealth>>,
        since: Moment,
    ) -> Option<StoreTask> {
        let mut state = self.lock();
        let Some((rate, store)) = origin.shared_rate().zip(store) else {
            if state.grid.take().is_some() {
                // From now on the gate has the whole rate for itself.
                state.gate.stand_alone(NonZeroU32::MIN, clock::now());
                drop(state);
                self.changes.send_replace(());
            }
            return None;
        };
        if let Some(grid) = &mut state.grid
            && grid.caller.is_for(store)
        {
            let (known_rate, _) = grid.rate;
            if known_rate != rate {
                grid.rate = (rate, since);
            }
            grid.claims.expect(origin.gateways);
            grid.caller.wake();
            return None;
        }
        let known = state.grid.as_ref().map(|grid| grid.gateway);
        let gateway = known.unwrap_or_else(|| new_gateway(&origin.name));
        let caller = Caller::new(store);
        let task = StoreTask::new(self, origin, SharedThing::Slots, gateway, &caller);
        state.grid = Some(SharedGrid {
            claims: Claims::new(origin.gateways),
            gateway,
            rate: (rate, since),
            caller,
        });
        state.gate.share_grid();
        Some(task)
    }

    /// Returns the status of the shared rate.
    #[cfg(test)]
    pub(crate) fn sharing(&self) -> Option<GateSharing> {
        self.lock().sharing()
    }
}

impl Dialogue for GridLink {
    type Call = SlotClaim;
    type Reply = GridAnswer;

    fn caller(state: &mut State) -> Option<&mut Caller> {
        state.grid.as_mut().map(|grid| &mut grid.caller)
    }

    fn next_call(gate: &OriginGate, state: &mut State, now: Moment) -> Option<SlotClaim> {
        state.back_off(&gate.metrics, now);
        let part = state.part_of_slots();
        let State { grid, gate, .. } = state;
        let grid = grid.as_mut()?;
        if !grid.caller.begin_if_due(grid.claims.due(gate, now), now) {
            return None;
        }
        let mut demand = gate.demand(now);
        if grid.claims.sharing() != Sharing::Grid {
            // Alone, the gate uses its part of the rate, and claims no slots.
            demand.slots = 0;
        }
        let has_waiters = !demand.classes.is_empty();
        grid.claims.sent(demand.slots, has_waiters, now);
        let rate = grid.rate;
        Some(SlotClaim { demand, part, rate })
    }

    async fn call(
        &mut self,
        key: &mut StoreKey,
        claim: &SlotClaim,
    ) -> Result<GridAnswer, StoreError> {
        self.claim(key, claim).await
    }

    fn use_reply(
        gate: &Arc<OriginGate>,
        mut state: MutexGuard<'_, State>,
        origin: &str,
        _: SlotClaim,
        reply: Result<GridAnswer, StoreError>,
    ) -> bool {
        let now = clock::now();
        let State {
            grid, gate: queue, ..
        } = &mut *state;
        let Some(grid) = grid else { return false };
        let (sharing_before, known_gateways) = (grid.claims.sharing(), grid.claims.gateways());
        match &reply {
            Ok(answer) => grid.claims.answered(queue, answer, now),
            Err(_) => grid.claims.failed(queue, now),
        }
        let (sharing_now, (own_rate, _)) = (grid.claims.sharing(), grid.rate);
        let is_alone = sharing_now != Sharing::Grid;
        if let Ok(answer) = &reply {
            state.follow_rate(origin, answer.rate, own_rate, now);
        }
        gate.advance(state, now);
        match (sharing_before, sharing_now, &reply) {
            (Sharing::Grid, Sharing::Alone(parts), Err(why)) => {
                log_alone(origin, parts, known_gateways.is_some(), why);
            }
            (Sharing::Alone(_), Sharing::Grid, _) => {
                tracing::info!(origin, "the gateways share the rate again");
            }
            _ => {}
        }
        is_alone && reply.is_err()
    }

    fn store_is_back(state: &mut State) {
        if let Some(grid) = &mut state.grid {
            grid.claims.found(clock::now());
        }
    }
}

/// Logs that this gateway goes on alone with the rate divided by `parts`, with the reason.
///
/// `is_count_known`: whether the store has reported how many gateways share the rate.
fn log_alone(origin: &str, parts: NonZeroU32, is_count_known: bool, why: &StoreError) {
    let remedy = why.remedy();
    let problem = if why.is_answer() {
        "the store refuses the claims of the origin's gate"
    } else {
        "the store does not answer"
    };
    let (unknown, set_gateways) = if is_count_known {
        ("", String::new())
    } else {
        let unknown = ", and the number of gateways is unknown";
        (unknown, format!("set gateways in [origins.{origin}]; "))
    };
    tracing::warn!(
        origin,
        error = why.to_string(),
        "{problem}{unknown}: this gateway goes on alone with 1/{parts} of the rate; {set_gateways}{remedy}"
    );
}
