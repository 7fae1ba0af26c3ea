//! The gate of an origin whose places several gateways share: it borrows them from one pool.
//!
//! One task of one worker calls the pool ([`PlaceBorrowing`]). What it borrows and when it calls is
//! [`limit::Borrower`].

mod borrowing;
mod link;
mod outage_log;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use actix_rt::ArbiterHandle;
use config;
use limit::{
    self, Borrower, Borrowing, Moment, PlaceNeeds, PoolCall, PoolCounts, PoolReply, WithoutPool,
};
use tokio::sync::Notify;

use super::alarms::Alarms;
use super::store_key::new_gateway;
use super::{KeyAtGate, OriginGate, State};
use crate::time::clock;
use crate::zone::{StoreHealth, StoreRefusal};
use borrowing::PlaceBorrowing;
use outage_log::tell_out;

/// What the end of a lease is while there is none.
pub(super) const NO_LEASE: u64 = u64::MAX;

/// How the gate of an origin shares its places.
#[derive(Debug)]
pub(super) struct SharedPlaces {
    borrower: Borrower,
    /// What tells the gate from those at other gateways, also after the settings of the store
    /// have changed.
    gateway: u64,
    store: Arc<StoreHealth>,
    terms: PoolTerms,
    /// Why the pool cannot be asked; `None` while it can.
    why_out: Option<StoreRefusal>,
    /// Tells the task to look again.
    wake: Arc<Notify>,
    /// When the task looks by itself; `None`: only if it is told.
    looks: Option<Moment>,
    /// Whether it waits for the answer of a call.
    is_calling: bool,
}

/// What the file says of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PoolTerms {
    /// The places of all gateways, and since when.
    pub(super) most: (usize, Moment),
    pub(super) orphan: Duration,
    without: WithoutPool,
    gateways: Option<NonZeroU32>,
}

/// How an origin's places are shared, for people and metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct PlaceSharing {
    /// Places that this gateway holds.
    pub held: usize,
    /// Those of them in which a request runs.
    pub in_use: usize,
    /// Whether its lease has ended and it cannot reach the pool.
    pub is_out: bool,
    /// How many places it takes without asking; `None`: none.
    pub alone: Option<usize>,
    /// Why it cannot; `None`: it can.
    pub why_out: Option<StoreRefusal>,
    /// The state of the pool, as last told; `None`: not yet.
    pub pool: Option<PoolCounts>,
}

/// What the task does next.
pub(super) enum Step {
    /// The gate does not share its places any more, or another task calls for it.
    End,
    /// It waits, until then at most.
    Wait(Option<Moment>),
    Call(PoolCall, PoolTerms),
}

impl PoolTerms {
    fn of(origin: &config::Origin, since: Moment) -> Option<Self> {
        Some(Self {
            most: (origin.shared_places()?.get(), since),
            orphan: origin.orphan,
            without: origin.on_store_failure,
            gateways: origin.gateways,
        })
    }

    fn borrower(self) -> Borrower {
        Borrower::new(self.most.0, self.orphan, self.without, self.gateways)
    }
}

impl SharedPlaces {
    /// Lets as many requests be at the origin as there are places now.
    pub(super) fn bind<W>(&self, gate: &mut limit::Gate<KeyAtGate, W>, now: Moment) {
        gate.set_lent(Some(self.borrower.lent(now)), now);
    }

    /// What the gate has to do with places.
    fn needs_of<W>(&self, gate: &limit::Gate<KeyAtGate, W>, now: Moment) -> PlaceNeeds {
        gate.place_needs(now, self.borrower.ahead())
    }

    /// A request has started: so many are at the origin.
    pub(super) fn started<W>(&mut self, gate: &limit::Gate<KeyAtGate, W>) {
        self.borrower.started(gate.in_flight());
    }

    /// A request has ended. Returns whether fewer may be there from now on.
    pub(super) fn ended<W>(&mut self, gate: &limit::Gate<KeyAtGate, W>, now: Moment) -> bool {
        let before = self.borrower.held();
        self.borrower.ended(gate.in_flight(), now);
        self.borrower.held() < before
    }

    /// Wakes the task if a call is due before it looks by itself.
    pub(super) fn note<W>(&mut self, gate: &limit::Gate<KeyAtGate, W>, now: Moment) {
        let Some(due) = self.borrower.due(self.needs_of(gate, now)) else {
            return;
        };
        if !self.is_calling && self.looks.is_none_or(|looks| due < looks) {
            self.looks = Some(due);
            self.wake.notify_one();
        }
    }

    /// Another task calls from now on, through a link with other settings. The one before ends.
    fn reach_by(&mut self, store: &Arc<StoreHealth>, wake: Arc<Notify>) {
        self.borrower.reconnect();
        self.wake.notify_one();
        (self.store, self.wake) = (Arc::clone(store), wake);
        (self.looks, self.is_calling) = (None, false);
    }

    fn lease_end(&self) -> u64 {
        match self.borrower.borrowing() {
            Borrowing::Alone(_) => NO_LEASE,
            Borrowing::Pool => self.borrower.until().as_nanos(),
        }
    }
}

impl State {
    pub(super) fn place_sharing(&self) -> Option<PlaceSharing> {
        let places = self.places.as_ref()?;
        let borrower = &places.borrower;
        Some(PlaceSharing {
            held: borrower.held(),
            in_use: self.gate.in_flight().min(borrower.held()),
            is_out: borrower.is_out(),
            alone: match borrower.borrowing() {
                Borrowing::Alone(part) => Some(part),
                Borrowing::Pool => None,
            },
            why_out: places.why_out.clone(),
            pool: borrower.counts(),
        })
    }

    /// Lets as many requests be at the origin as the gate has places now.
    pub(super) fn follow_places(&mut self, now: Moment) {
        if let Some(places) = &self.places {
            places.bind(&mut self.gate, now);
        }
    }

    /// From now on no place is kept that is not in use.
    pub(super) fn leave_pool(&mut self, now: Moment) {
        if let Some(places) = &mut self.places {
            places.borrower.leave();
            places.note(&self.gate, now);
        }
    }

    fn place_needs(&self, now: Moment) -> PlaceNeeds {
        let Some(places) = &self.places else {
            return PlaceNeeds::default();
        };
        let needs = places.needs_of(&self.gate, now);
        if self.is_closed {
            return PlaceNeeds {
                waiting: 0,
                ..needs
            };
        }
        needs
    }
}

impl OriginGate {
    /// Shares the places through this store from now on, if the origin's settings say so.
    ///
    /// Those who wait stay. `worker`: where the task runs. `since`: when the file got its
    /// maximum, if the gate did not have it before.
    pub(crate) fn share_places(
        self: &Arc<Self>,
        origin: &config::Origin,
        store: Option<&Arc<StoreHealth>>,
        worker: Option<&ArbiterHandle>,
        since: Moment,
    ) {
        let store = store.filter(|_| worker.is_some());
        let begun = self.begin_sharing_places(origin, store, since);
        if let (Some(borrowing), Some(worker)) = (begun, worker) {
            worker.spawn_fn(move || {
                actix_rt::spawn(borrowing.run());
            });
        }
    }

    /// The part of [`share_places`](Self::share_places) that is not the task itself, which is
    /// returned if one has to begin.
    pub(crate) fn begin_sharing_places(
        self: &Arc<Self>,
        origin: &config::Origin,
        store: Option<&Arc<StoreHealth>>,
        since: Moment,
    ) -> Option<PlaceBorrowing> {
        let mut state = self.lock();
        let now = clock::now();
        let Some((terms, store)) = PoolTerms::of(origin, since).zip(store) else {
            if let Some(places) = state.places.take() {
                state.gate.set_lent(None, now);
                self.lease_end.store(NO_LEASE, Ordering::Relaxed);
                places.wake.notify_one();
                drop(state);
                self.changes.send_replace(());
            }
            return None;
        };
        if let Some(places) = &mut state.places {
            let since = if places.terms.most.0 == terms.most.0 {
                places.terms.most.1
            } else {
                since
            };
            places.terms = PoolTerms {
                most: (terms.most.0, since),
                ..terms
            };
            let (orphan, without) = (terms.orphan, terms.without);
            (places.borrower).set(terms.most.0, orphan, without, terms.gateways);
            places.wake.notify_one();
            if Arc::ptr_eq(&places.store, store) {
                return None;
            }
        }
        let wake = Arc::new(Notify::new());
        let gateway = if let Some(places) = &mut state.places {
            // It goes on as the same gateway: what another one had is withheld.
            places.reach_by(store, Arc::clone(&wake));
            places.gateway
        } else {
            let gateway = new_gateway(&origin.name);
            state.places = Some(Box::new(SharedPlaces {
                borrower: terms.borrower(),
                gateway,
                store: Arc::clone(store),
                terms,
                why_out: None,
                wake: Arc::clone(&wake),
                looks: None,
                is_calling: false,
            }));
            self.lease_end.store(0, Ordering::Relaxed);
            gateway
        };
        state.follow_places(now);
        drop(state);
        Some(PlaceBorrowing {
            gate: Arc::downgrade(self),
            gateway,
            store: Arc::clone(store),
            origin: origin.name.clone(),
            wake,
        })
    }

    /// Whether a request that has its place may still be sent: its gateway's lease has not ended.
    ///
    /// A gateway that stood still may find that it has.
    pub(super) fn may_start(&self) -> bool {
        let lease_end = self.lease_end.load(Ordering::Relaxed);
        lease_end == NO_LEASE || clock::now().as_nanos() < lease_end
    }

    /// Gives back each place of the pool that is not in use, and waits until the pool knows.
    pub(crate) async fn give_back_places(&self) {
        const LOOKS: Duration = Duration::from_millis(5);
        while self.still_leaves() {
            tokio::time::sleep(LOOKS).await;
        }
    }

    /// Gives back each place of the pool that is not in use. Returns whether the pool is still to
    /// know.
    fn still_leaves(&self) -> bool {
        let mut state = self.lock();
        let needs = state.place_needs(clock::now());
        let Some(places) = &mut state.places else {
            return false;
        };
        places.borrower.leave();
        let is_over = places.borrower.is_gone(needs) || places.borrower.is_out();
        if !is_over {
            places.wake.notify_one();
        }
        !is_over
    }

    /// How it shares its places now.
    #[must_use]
    pub fn place_sharing(&self) -> Option<PlaceSharing> {
        self.lock().place_sharing()
    }

    pub(super) fn next_call(&self, wake: &Arc<Notify>) -> Step {
        let mut state = self.lock();
        let now = clock::now();
        let needs = state.place_needs(now);
        let State { places, gate, .. } = &mut *state;
        let places = places
            .as_mut()
            .filter(|places| Arc::ptr_eq(&places.wake, wake));
        let Some(places) = places else {
            return Step::End;
        };
        let due = places.borrower.due(needs);
        if due.is_none_or(|due| due > now) {
            places.looks = due;
            return Step::Wait(due);
        }
        let call = places.borrower.call(needs, now);
        (places.looks, places.is_calling) = (None, true);
        // What is given back is not used from now on.
        places.bind(gate, now);
        Step::Call(call, places.terms)
    }

    /// Hands the answer to a call to the gate. Returns whether the pool cannot be reached.
    pub(super) fn called(
        self: &Arc<Self>,
        wake: &Arc<Notify>,
        origin: &str,
        answer: &Result<PoolReply, StoreRefusal>,
    ) -> bool {
        let mut state = self.lock();
        let now = clock::now();
        let needs = state.place_needs(now);
        let places = state.places.as_mut();
        let Some(places) = places.filter(|places| Arc::ptr_eq(&places.wake, wake)) else {
            return false;
        };
        places.is_calling = false;
        let was_out = places.borrower.is_out();
        match answer {
            Ok(reply) => places.borrower.answered(reply, needs, now),
            Err(_) => places.borrower.failed(),
        }
        places.why_out = answer.as_ref().err().cloned();
        let (is_out, alone) = (places.borrower.is_out(), places.borrower.borrowing());
        let most = places.terms.most.0;
        self.lease_end.store(places.lease_end(), Ordering::Relaxed);
        state.follow_places(now);
        let released = state.release(&self.metrics, now);
        let is_told = Alarms::set_here(self, &mut state, now);
        drop(state);
        self.tell(released, is_told);
        match answer {
            Err(why) if is_out && !was_out => tell_out(origin, alone, most, why),
            Ok(_) if was_out => tracing::info!(origin, "the gateways share the places again"),
            _ => {}
        }
        is_out
    }

    /// What is at the origin if the gate does not share its places any more; `None` if it does.
    pub(super) fn left_in_use(&self) -> Option<usize> {
        let state = self.lock();
        (state.places.is_none()).then(|| state.gate.in_flight())
    }

    pub(super) fn borrows_by(&self, wake: &Arc<Notify>) -> bool {
        let state = self.lock();
        let places = state.places.as_ref();
        places.is_some_and(|places| Arc::ptr_eq(&places.wake, wake))
    }
}
