//! Shared rate of an origin's gate: claims slots of a grid that several gateways share.
//!
//! A grid is the schedule of an origin's departures in the store. Each gateway claims some of its
//! slots, and lets one request depart in each.
//!
//! [`limit::Claims`] decides how many slots to claim, and when. [`GridLink`] sends the claims to
//! the store.

use std::num::NonZeroU32;
use std::sync::{Arc, MutexGuard};

use limit::{self, Claims, GridAnswer, Moment, Rate, Sharing, SlotCounts};

use super::grid_link::{GridLink, SlotClaim};
use super::store_key::{StoreKey, new_gateway};
use super::store_task::{Caller, Dialogue, Shared, StoreTask};
use super::{OriginGate, Queue, State};
use crate::time::clock;
use crate::zone::{StoreError, StoreHealth};

/// State with which a gate shares its rate.
pub(super) struct SharedGrid {
    claims: Claims,
    /// Random identifier of this gate in the cluster. Kept when the store's settings change.
    gateway: u64,
    /// Rate in this gateway's file, and the instant since which the file has it.
    rate: (Rate, Moment),
    caller: Caller,
}

/// Status of a shared rate, for the API and the metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct GateSharing {
    /// Whether this gateway uses its part alone: the store is out or refuses the gate's key.
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
    pub(super) fn note(&mut self, gate: &Queue, now: Moment) {
        self.caller.note(self.claims.due(gate, now));
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

    /// Part of its slots that the gate may take: below 1 while the back-off lowers the rate.
    fn part_of_turns(&self) -> f64 {
        let now = self.gate.limits().rate;
        let whole = self.whole().rate.or(now);
        match (now, whole) {
            (Some(now), Some(whole)) => {
                (now.per_second() / whole.per_second()).clamp(f64::MIN_POSITIVE, 1.0)
            }
            _ => 1.0,
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
                state.gate.stand_alone(NonZeroU32::MIN, clock::now());
                drop(state);
                self.changes.send_replace(());
            }
            return None;
        };
        if let Some(grid) = &mut state.grid
            && grid.caller.calls(store)
        {
            if grid.rate.0 != rate {
                grid.rate = (rate, since);
            }
            grid.claims.expect(origin.gateways);
            grid.caller.wake();
            return None;
        }
        let known = state.grid.as_ref().map(|grid| grid.gateway);
        let gateway = known.unwrap_or_else(|| new_gateway(&origin.name));
        let caller = Caller::new(store);
        let task = StoreTask::new(self, origin, Shared::Slots, gateway, &caller);
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

    fn key(&mut self) -> &mut StoreKey {
        &mut self.key
    }

    fn next(gate: &OriginGate, state: &mut State, now: Moment) -> Option<SlotClaim> {
        state.back_off(&gate.metrics, now);
        let part = state.part_of_turns();
        let State { grid, gate, .. } = state;
        let grid = grid.as_mut()?;
        if !grid.caller.begins(grid.claims.due(gate, now), now) {
            return None;
        }
        let mut demand = gate.demand(now);
        if grid.claims.sharing() != Sharing::Grid {
            demand.slots = 0;
        }
        let waits = !demand.classes.is_empty();
        grid.claims.sent(demand.slots, waits, now);
        let rate = grid.rate;
        Some(SlotClaim { demand, part, rate })
    }

    async fn call(&mut self, claim: &SlotClaim) -> Result<GridAnswer, StoreError> {
        self.claim(claim).await
    }

    fn replied(
        &mut self,
        gate: &Arc<OriginGate>,
        mut state: MutexGuard<'_, State>,
        _: SlotClaim,
        reply: Result<GridAnswer, StoreError>,
    ) -> bool {
        let (now, origin) = (clock::now(), self.key.origin.as_str());
        let State { grid, gate: it, .. } = &mut *state;
        let Some(grid) = grid else { return false };
        let (before, known) = (grid.claims.sharing(), grid.claims.gateways());
        match &reply {
            Ok(answer) => grid.claims.answered(it, answer, now),
            Err(_) => grid.claims.failed(it, now),
        }
        let (after, own) = (grid.claims.sharing(), grid.rate.0);
        let is_alone = after != Sharing::Grid;
        if let Ok(answer) = &reply {
            state.follow_rate(origin, answer.rate, own, now);
        }
        gate.advance(state, now);
        match (before, after, &reply) {
            (Sharing::Grid, Sharing::Alone(parts), Err(why)) => {
                log_alone(origin, parts, known.is_some(), why);
            }
            (Sharing::Alone(_), Sharing::Grid, _) => {
                tracing::info!(origin, "the gateways share the rate again");
            }
            _ => {}
        }
        is_alone && reply.is_err()
    }

    fn found(state: &mut State) {
        if let Some(grid) = &mut state.grid {
            grid.claims.found(clock::now());
        }
    }
}

/// Logs that this gateway uses its part of the rate alone, with the reason.
fn log_alone(origin: &str, parts: NonZeroU32, is_known: bool, why: &StoreError) {
    let remedy = why.remedy();
    let what = if why.is_answer() {
        "the store refuses the claims of the origin's gate"
    } else {
        "the store does not answer"
    };
    if is_known {
        tracing::warn!(
            origin,
            error = why.to_string(),
            "{what}: this gateway goes on alone with 1/{parts} of the rate; {remedy}"
        );
    } else {
        tracing::warn!(
            origin,
            error = why.to_string(),
            "{what}, and the number of gateways is unknown: this gateway goes on alone with 1/{parts} of the rate; set gateways in [origins.{origin}]; {remedy}"
        );
    }
}
