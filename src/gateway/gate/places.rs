//! The gate of an origin whose places several gateways share: it borrows them from one pool.
//!
//! What it borrows and when it calls the pool is [`limit::Borrower`]; how it reaches the pool is
//! [`PlacesLink`].

mod link;

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use limit::{
    self, Borrower, Borrowing, Moment, PlaceNeeds, PoolCall, PoolCounts, PoolLimits, PoolReply,
};

use super::store_key::{StoreKey, new_gateway};
use super::store_task::{Caller, Dialogue, Shared, StoreTask};
use super::{KeyAtGate, OriginGate, State};
use crate::time::clock;
use crate::zone::{StoreHealth, StoreRefusal};
pub(super) use link::PlacesLink;

/// What the end of a lease is while there is none.
pub(super) const NO_LEASE: u64 = u64::MAX;

/// How the gate of an origin shares its places.
#[derive(Debug)]
pub(super) struct SharedPlaces {
    borrower: Borrower,
    /// What tells the gate from those at other gateways, also after the settings of the store
    /// have changed.
    gateway: u64,
    terms: PoolTerms,
    caller: Caller,
}

/// What the file says of a pool, and since when it has had this maximum.
#[derive(Clone, Copy, Debug)]
pub(super) struct PoolTerms {
    limits: PoolLimits,
    since: Moment,
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

/// What the file says of an origin's pool; `None`: its places are not shared.
fn pool_limits(origin: &config::Origin) -> Option<PoolLimits> {
    Some(PoolLimits {
        most: origin.shared_places()?.get(),
        orphan: origin.orphan,
        without: origin.on_store_failure,
        gateways: origin.gateways,
    })
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
        self.caller
            .note(self.borrower.due(self.needs_of(gate, now)));
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
            why_out: places.caller.refusal.clone(),
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
        let mut needs = places.needs_of(&self.gate, now);
        if self.is_closed {
            needs.waiting = 0;
        }
        needs
    }
}

impl OriginGate {
    /// Shares the places through this store from now on, if the origin's settings say so.
    pub(super) fn share_places(
        self: &Arc<Self>,
        origin: &config::Origin,
        store: Option<&Arc<StoreHealth>>,
        since: Moment,
    ) -> Option<StoreTask> {
        let mut state = self.lock();
        let now = clock::now();
        let Some((limits, store)) = pool_limits(origin).zip(store) else {
            if state.places.take().is_some() {
                state.gate.set_lent(None, now);
                self.lease_end.store(NO_LEASE, Ordering::Relaxed);
                drop(state);
                self.changes.send_replace(());
            }
            return None;
        };
        let caller = Caller::new(store);
        let task = |gateway| StoreTask::new(self, origin, Shared::Places, gateway, &caller);
        let Some(places) = &mut state.places else {
            let gateway = new_gateway(&origin.name);
            let task = task(gateway);
            state.places = Some(Box::new(SharedPlaces {
                borrower: Borrower::new(limits),
                gateway,
                terms: PoolTerms { limits, since },
                caller,
            }));
            self.lease_end.store(0, Ordering::Relaxed);
            state.follow_places(now);
            return Some(task);
        };
        if places.terms.limits.most != limits.most {
            places.terms.since = since;
        }
        places.terms.limits = limits;
        places.borrower.set(limits);
        if places.caller.calls(store) {
            places.caller.wake();
            return None;
        }
        // It goes on as the same gateway: what another one had is withheld.
        places.borrower.reconnect();
        let task = task(places.gateway);
        places.caller = caller;
        state.follow_places(now);
        Some(task)
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
            places.caller.wake();
        }
        !is_over
    }

    /// How it shares its places now.
    pub fn place_sharing(&self) -> Option<PlaceSharing> {
        self.lock().place_sharing()
    }

    /// What is at the origin if the gate does not share its places any more; `None` if it does.
    pub(super) fn left_in_use(&self) -> Option<usize> {
        let state = self.lock();
        (state.places.is_none()).then(|| state.gate.in_flight())
    }
}

impl Dialogue for PlacesLink {
    type Call = (PoolCall, PoolTerms);
    type Reply = PoolReply;

    fn caller(state: &mut State) -> Option<&mut Caller> {
        state.places.as_mut().map(|places| &mut places.caller)
    }

    fn key(&mut self) -> &mut StoreKey {
        &mut self.key
    }

    fn next(_: &OriginGate, state: &mut State, now: Moment) -> Option<Self::Call> {
        let needs = state.place_needs(now);
        let places = state.places.as_mut()?;
        if !places.caller.begins(places.borrower.due(needs), now) {
            return None;
        }
        let call = places.borrower.call(needs, now);
        // What is given back is not used from now on.
        places.bind(&mut state.gate, now);
        Some((call, places.terms))
    }

    async fn call(&mut self, (call, terms): &Self::Call) -> Result<PoolReply, StoreRefusal> {
        self.tell(call, *terms).await
    }

    fn replied(
        &mut self,
        gate: &Arc<OriginGate>,
        mut state: MutexGuard<'_, State>,
        _: Self::Call,
        reply: Result<PoolReply, StoreRefusal>,
    ) -> bool {
        let (now, origin) = (clock::now(), self.key.origin.as_str());
        let needs = state.place_needs(now);
        let Some(places) = &mut state.places else {
            return false;
        };
        let was_out = places.borrower.is_out();
        match &reply {
            Ok(reply) => places.borrower.answered(reply, needs, now),
            Err(_) => places.borrower.failed(),
        }
        let (is_out, borrowing) = (places.borrower.is_out(), places.borrower.borrowing());
        let most = places.terms.limits.most;
        gate.lease_end.store(places.lease_end(), Ordering::Relaxed);
        state.follow_places(now);
        gate.advance(state, now);
        match &reply {
            Err(why) if is_out && !was_out => tell_out(origin, borrowing, most, why),
            Ok(_) if was_out => tracing::info!(origin, "the gateways share the places again"),
            _ => {}
        }
        is_out
    }
}

/// Logs that the pool of this origin's places cannot be called, and how the gateway goes on.
fn tell_out(origin: &str, borrowing: Borrowing, most: usize, why: &StoreRefusal) {
    let StoreRefusal { reason, remedy, .. } = why;
    let what = if why.is_answer {
        "the store refuses the calls of the origin's pool of places"
    } else {
        "the store does not answer"
    };
    match borrowing {
        Borrowing::Alone(part) => tracing::warn!(
            origin,
            error = reason,
            "{what}, and the lease of the places has ended: this gateway goes on alone with {part} of {most} places; {remedy}"
        ),
        Borrowing::Pool => tracing::warn!(
            origin,
            error = reason,
            "{what}, and the lease of the places has ended: this gateway starts no requests; {remedy}"
        ),
    }
}
