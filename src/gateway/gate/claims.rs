//! The gate of an origin whose rate several gateways share: it claims slots of one grid.
//!
//! One task of one worker claims for all. What it claims and when is [`limit::Claims`]; how it
//! reaches the store is [`GridLink`].

use std::num::NonZeroU32;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};

use actix_rt::ArbiterHandle;
use config;
use futures_util::FutureExt;
use limit::{self, Claims, Demand, GridAnswer, Moment, Rate, Sharing, SlotCounts};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::alarms::Alarms;
use super::grid_link::GridLink;
use super::store_key::new_gateway;
use super::{OriginGate, State};
use crate::time::clock;
use crate::zone::{StoreHealth, StoreRefusal};

/// How the gate of an origin shares its rate.
#[derive(Debug)]
pub(super) struct SharedGrid {
    claims: Claims,
    /// What tells the gate from those at other gateways, also after the settings of the store
    /// have changed.
    gateway: u64,
    store: Arc<StoreHealth>,
    /// The rate in this gateway's file, and since when.
    rate: Rate,
    since: Moment,
    /// Why it goes on alone; `None` while it does not.
    why_alone: Option<StoreRefusal>,
    /// Tells the task to look again.
    wake: Arc<Notify>,
    /// When the task looks by itself; `None`: only if it is told.
    looks: Option<Moment>,
}

/// How an origin's rate is shared, for people and metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct GateSharing {
    /// Whether this gateway goes on alone, as the store is out or refuses the gate's key.
    pub is_alone: bool,
    /// Why it does; `None`: it does not, or only waits for the others.
    pub why_alone: Option<StoreRefusal>,
    /// Its part of the rate, above 0 and at most 1.
    pub part: f64,
    /// How many gateways share the rate; `None`: not known.
    pub gateways: Option<u32>,
    /// What became of the slots that it was granted.
    pub slots: SlotCounts,
}

/// What the task does next.
enum Step {
    /// The gate does not share its rate any more, or another task claims for it.
    End,
    /// It waits, until then at most.
    Wait(Option<Moment>),
    Claim {
        demand: Demand,
        part: f64,
        rate: (Rate, Moment),
    },
}

impl SharedGrid {
    /// Wakes the task if a claim is due before it looks by itself.
    pub(super) fn note<K, W>(&mut self, gate: &limit::Gate<K, W>, now: Moment)
    where
        K: std::hash::Hash + Eq + Clone,
    {
        let Some(due) = self.claims.due(gate, now) else {
            return;
        };
        if self.looks.is_none_or(|looks| due < looks) {
            self.looks = Some(due);
            self.wake.notify_one();
        }
    }
}

impl State {
    pub(super) fn sharing(&self) -> Option<GateSharing> {
        let grid = self.grid.as_ref()?;
        Some(GateSharing {
            is_alone: grid.claims.sharing() != Sharing::Grid,
            why_alone: grid.why_alone.clone(),
            part: grid.claims.part(),
            gateways: grid.claims.gateways().map(NonZeroU32::get),
            slots: self.gate.slot_counts(),
        })
    }

    /// Which part of its turns the gate may take: less than all while it backs off.
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
    /// Shares the rate through this store from now on, if the origin's settings say so.
    ///
    /// Those who wait stay. `worker`: where the task runs. `since`: when the file got its rate, if
    /// the gate did not have it before.
    pub(crate) fn share(
        self: &Arc<Self>,
        origin: &config::Origin,
        store: Option<&Arc<StoreHealth>>,
        worker: Option<&ArbiterHandle>,
        since: Moment,
    ) {
        let Some(claiming) = self.begin_sharing(origin, store.filter(|_| worker.is_some()), since)
        else {
            return;
        };
        if let Some(worker) = worker {
            worker.spawn_fn(move || {
                actix_rt::spawn(claiming.run());
            });
        }
    }

    /// The part of [`share`](Self::share) that is not the task itself, which is returned if one has
    /// to begin.
    pub(crate) fn begin_sharing(
        self: &Arc<Self>,
        origin: &config::Origin,
        store: Option<&Arc<StoreHealth>>,
        since: Moment,
    ) -> Option<Claiming> {
        let mut state = self.lock();
        let Some((rate, store)) = origin.shared_rate().zip(store) else {
            if let Some(grid) = state.grid.take() {
                let now = clock::now();
                state.gate.stand_alone(NonZeroU32::MIN, now);
                grid.wake.notify_one();
                drop(state);
                self.changes.send_replace(());
            }
            return None;
        };
        if let Some(grid) = &mut state.grid
            && Arc::ptr_eq(&grid.store, store)
        {
            if grid.rate != rate {
                (grid.rate, grid.since) = (rate, since);
            }
            grid.claims.expect(origin.gateways);
            grid.wake.notify_one();
            return None;
        }
        let wake = Arc::new(Notify::new());
        let known = state.grid.as_ref().map(|grid| grid.gateway);
        let gateway = known.unwrap_or_else(|| new_gateway(&origin.name));
        let before = state.grid.replace(SharedGrid {
            claims: Claims::new(origin.gateways),
            gateway,
            store: Arc::clone(store),
            rate,
            since,
            why_alone: None,
            wake: Arc::clone(&wake),
            looks: None,
        });
        state.gate.share_grid();
        drop(state);
        if let Some(before) = before {
            before.wake.notify_one();
        }
        Some(Claiming {
            gate: Arc::downgrade(self),
            gateway,
            store: Arc::clone(store),
            origin: origin.name.clone(),
            wake,
        })
    }

    /// How it shares its rate now.
    #[cfg(test)]
    pub(crate) fn sharing(&self) -> Option<GateSharing> {
        self.lock().sharing()
    }

    fn next_step(&self, wake: &Arc<Notify>) -> Step {
        let mut state = self.lock();
        let now = clock::now();
        state.back_off(&self.metrics, now);
        let part = state.part_of_turns();
        let State { grid, gate, .. } = &mut *state;
        let grid = grid.as_mut().filter(|grid| Arc::ptr_eq(&grid.wake, wake));
        let Some(grid) = grid else {
            return Step::End;
        };
        let due = grid.claims.due(gate, now);
        if due.is_none_or(|due| due > now) {
            grid.looks = due;
            return Step::Wait(due);
        }
        let mut demand = gate.demand(now);
        if !grid.claims.takes_slots() {
            demand.slots = 0;
        }
        grid.claims
            .sent(demand.slots, !demand.classes.is_empty(), now);
        grid.looks = None;
        Step::Claim {
            demand,
            part,
            rate: (grid.rate, grid.since),
        }
    }

    /// Hands the answer to a claim to the gate. Returns how it goes on.
    fn claimed(
        self: &Arc<Self>,
        wake: &Arc<Notify>,
        origin: &str,
        answer: &Result<GridAnswer, StoreRefusal>,
    ) -> Sharing {
        let mut state = self.lock();
        let now = clock::now();
        let State { grid, gate, .. } = &mut *state;
        let grid = grid.as_mut().filter(|grid| Arc::ptr_eq(&grid.wake, wake));
        let Some(grid) = grid else {
            return Sharing::Grid;
        };
        let (before, known) = (grid.claims.sharing(), grid.claims.gateways());
        match answer {
            Ok(answer) => grid.claims.answered(gate, answer, now),
            Err(_) => grid.claims.failed(gate, now),
        }
        let (after, own) = (grid.claims.sharing(), grid.rate);
        grid.why_alone = match answer {
            Err(why) if after != Sharing::Grid => Some(why.clone()),
            _ => None,
        };
        if let Ok(answer) = answer {
            state.follow_rate(origin, answer.rate, own, now);
        }
        let released = state.release(&self.metrics, now);
        let is_told = Alarms::set_here(self, &mut state, now);
        drop(state);
        self.tell(released, is_told);
        match (before, after, answer) {
            (Sharing::Grid, Sharing::Alone(parts), Err(why)) => {
                tell_alone(origin, parts, known.is_some(), why);
            }
            (Sharing::Alone(_), Sharing::Grid, _) => {
                tracing::info!(origin, "the gateways share the rate again");
            }
            _ => {}
        }
        after
    }

    fn found(&self, wake: &Arc<Notify>) {
        let mut state = self.lock();
        let grid = state.grid.as_mut();
        if let Some(grid) = grid.filter(|grid| Arc::ptr_eq(&grid.wake, wake)) {
            grid.claims.found(clock::now());
        }
    }

    fn is_served_by(&self, wake: &Arc<Notify>) -> bool {
        let state = self.lock();
        let grid = state.grid.as_ref();
        grid.is_some_and(|grid| Arc::ptr_eq(&grid.wake, wake))
    }
}

/// The task that claims slots for a gate, before it runs.
pub(crate) struct Claiming {
    gate: Weak<OriginGate>,
    gateway: u64,
    store: Arc<StoreHealth>,
    origin: String,
    /// Tells the task to look again.
    wake: Arc<Notify>,
}

impl Claiming {
    /// Runs on the thread of one worker.
    pub(crate) async fn run(self) {
        let link = GridLink::new(&self.store, &self.origin, self.gateway);
        claim_slots(self.gate, link, self.wake, &self.origin).await;
    }
}

fn tell_alone(origin: &str, parts: NonZeroU32, is_known: bool, why: &StoreRefusal) {
    let StoreRefusal { reason, remedy, .. } = why;
    let what = if why.is_answer {
        "the store refuses the claims of the origin's gate"
    } else {
        "the store does not answer"
    };
    if is_known {
        tracing::warn!(
            origin,
            error = reason,
            "{what}: this gateway goes on alone with 1/{parts} of the rate; {remedy}"
        );
    } else {
        tracing::warn!(
            origin,
            error = reason,
            "{what}, and has not told how many gateways share the rate: this one goes on alone with 1/{parts} of it; gateways in [origins.{origin}] says how many there are; {remedy}"
        );
    }
}

/// Claims slots for a gate until it is dropped or another task does. `wake` tells them apart.
async fn claim_slots(gate: Weak<OriginGate>, mut link: GridLink, wake: Arc<Notify>, origin: &str) {
    loop {
        let Some(step) = gate.upgrade().map(|gate| gate.next_step(&wake)) else {
            return;
        };
        match step {
            Step::End => return,
            Step::Wait(None) => wake.notified().await,
            Step::Wait(Some(until)) => {
                let left = until.since(clock::now());
                // Woken or not, it looks again.
                let _either = timeout(left, wake.notified()).await;
            }
            Step::Claim { demand, part, rate } => {
                // A panic counts as no answer: nothing else would give the gate its slots.
                let asked = AssertUnwindSafe(link.claim(&demand, part, rate)).catch_unwind();
                let answer = asked
                    .await
                    .unwrap_or_else(|_| Err(StoreRefusal::panicked()));
                let Some(open) = gate.upgrade() else {
                    return;
                };
                let is_alone = open.claimed(&wake, origin, &answer) != Sharing::Grid;
                let is_out = is_alone && answer.is_err();
                drop(open);
                if is_out && !wait_until_back(&gate, &mut link, &wake).await {
                    return;
                }
            }
        }
    }
}

/// Waits until the store takes writes again. Returns whether the gate still needs it.
async fn wait_until_back(gate: &Weak<OriginGate>, link: &mut GridLink, wake: &Arc<Notify>) -> bool {
    loop {
        let is_back = link.is_back().await;
        let Some(gate) = gate.upgrade().filter(|gate| gate.is_served_by(wake)) else {
            return false;
        };
        if is_back {
            gate.found(wake);
            return true;
        }
    }
}
