//! Batcher: carries the operations of a worker's zones to the store.

use std::cell::{Cell, RefCell};
use std::iter;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join;
use limit::Moment;
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::timeout;

use super::ask::{ChargeRequest, Reply};
use super::carried::Carried;
use super::key_permits::{PermitsCalls, PermitsRequest};
use super::refill::Refilled;
use super::{Decision, NoReply, SharedKey, StoreLink};
use crate::observe::metrics::StoreResult;
use crate::store::{
    Charge, Error, InForce, Link, LinkUser, StoreAnswer, StoreClock, StoreHealth, Trip,
    store_result, within,
};
use crate::time::pacer::Pacer;

/// Number of batches in flight from which on a new batch waits for a reply, or for
/// `MAX_GATHER_TIME`.
const ENOUGH_UNDER_WAY: usize = 4;
/// Time for which a batch waits while enough batches are in flight.
const MAX_GATHER_TIME: Duration = Duration::from_millis(1);
/// Upper bound of one kind's operations in a batch, so that it does not block Redis for long.
const MAX_OPERATIONS: usize = 256;
/// Upper bound of the slots that a batch takes, including slots taken ahead.
const MAX_SLOTS: usize = 2048;
/// Upper bound of the refunds, and of the retunes, that wait for a batch. More are dropped.
const MAX_WAITING: usize = 65_536;

/// Carries the operations of a worker's zones to the store.
///
/// Operations of the same moment share a batch.
///
/// The first operation that fails begins an outage of the worker's [`Link`]. Until the outage ends,
/// every caller is answered at once that there is no decision.
pub(super) struct Batcher {
    store_health: Arc<StoreHealth>,
    link: Rc<Link>,
    clock: Rc<StoreClock>,
    pacer: Rc<Pacer>,
    /// Charges that wait for their batch.
    joins: RefCell<Vec<ChargeRequest>>,
    /// Batches in flight.
    carried: Carried,
    /// Calls for permits.
    permits: PermitsCalls,
    /// Refunds that wait for their batch.
    refunds: RefCell<Vec<(SharedKey, Charge)>>,
    /// Retunes that wait for their batch.
    retunes: RefCell<Vec<(SharedKey, Reply<InForce>)>>,
    /// Whether refunds or retunes are in flight.
    tidying: Cell<bool>,
    /// Whether the next batch is about to be sent.
    gathering: Cell<bool>,
    /// Number of batches of charges in flight.
    under_way: Cell<usize>,
    /// Notifies that a batch has returned.
    back: Notify,
}

impl Batcher {
    /// Returns this thread's batcher for `store_health`.
    pub(super) fn to(store_health: &Arc<StoreHealth>, pacer: &Rc<Pacer>) -> Rc<Self> {
        Link::here(store_health).user(|link| Self {
            store_health: Arc::clone(store_health),
            link: Rc::clone(link),
            clock: link.clock(),
            pacer: Rc::clone(pacer),
            joins: RefCell::default(),
            carried: Carried::default(),
            permits: PermitsCalls::default(),
            refunds: RefCell::default(),
            retunes: RefCell::default(),
            tidying: Cell::default(),
            gathering: Cell::default(),
            under_way: Cell::default(),
            back: Notify::new(),
        })
    }

    pub(super) fn now(&self) -> Moment {
        self.pacer.now()
    }

    /// Returns whether the store is unavailable.
    pub(super) fn is_out(&self) -> bool {
        self.link.is_out()
    }

    /// Adds a charge to the next batch. Answers it at once if the store is unavailable.
    pub(super) fn ask(self: &Rc<Self>, ask: ChargeRequest) {
        if self.is_out() {
            ask.key.zone.count(StoreResult::Skipped);
            return ask.respond(Err(NoReply));
        }
        self.joins.borrow_mut().push(ask);
        self.gather();
    }

    /// Makes a call for the permits of a key. It is sent with the joins of the same moment.
    pub(super) fn call_for_permits(self: &Rc<Self>, ask: PermitsRequest) {
        let waiting = &self.permits.waiting;
        if self.is_out() || waiting.borrow().len() >= MAX_WAITING {
            return ask.zone.count(StoreResult::Skipped);
        }
        waiting.borrow_mut().push(ask);
        self.gather();
    }

    /// Refunds a charge.
    ///
    /// A refund that fails is lost. Then its key is paced too slowly once, never too fast.
    pub(super) fn refund(self: &Rc<Self>, key: SharedKey, charge: Charge) {
        let zone = Rc::clone(&key.zone);
        self.add(&self.refunds, (key, charge), &zone);
    }

    /// Asks the store to put the rate of this gateway's file into force for a key.
    pub(super) fn retune(self: &Rc<Self>, key: SharedKey, reply: Reply<InForce>) {
        let zone = Rc::clone(&key.zone);
        self.add(&self.retunes, (key, reply), &zone);
    }

    /// Gathers an operation that no request waits for.
    fn add<T>(self: &Rc<Self>, gathered: &RefCell<Vec<T>>, new: T, zone: &StoreLink) {
        if self.is_out() || gathered.borrow().len() >= MAX_WAITING {
            return zone.count(StoreResult::Skipped);
        }
        gathered.borrow_mut().push(new);
        self.tidy();
    }

    /// Asks the store to forget a key's charges, or only those behind `last`.
    pub(super) fn forget(self: &Rc<Self>, key: SharedKey, last: Option<Charge>) {
        if self.is_out() {
            return key.zone.count(StoreResult::Skipped);
        }
        let batcher = Rc::clone(self);
        actix_rt::spawn(async move {
            let store = batcher.link.store();
            let done = match last {
                None => store.forget(&key.name).await,
                Some(charge) => store.forget_behind(&key.refund(charge)).await,
            };
            batcher.note_result(&key.zone, done.as_ref().err());
        });
    }

    /// Sends the next batch after all operations of this moment have arrived.
    fn gather(self: &Rc<Self>) {
        let is_idle = self.joins.borrow().is_empty() && self.permits.waiting.borrow().is_empty();
        if is_idle || self.gathering.replace(true) {
            return;
        }
        let batcher = Rc::clone(self);
        actix_rt::spawn(async move {
            yield_now().await;
            if batcher.under_way.get() >= ENOUGH_UNDER_WAY {
                let _either = timeout(MAX_GATHER_TIME, batcher.back.notified()).await;
            }
            batcher.gathering.set(false);
            batcher.under_way.set(batcher.under_way.get() + 1);
            // Later batches are carried even if one makes this task panic.
            let _panic = AssertUnwindSafe(batcher.carry_batch()).catch_unwind().await;
            batcher.under_way.set(batcher.under_way.get() - 1);
            batcher.back.notify_one();
            batcher.carried.notify_answered();
            batcher.gather();
        });
    }

    /// Sends a batch of joins and calls for permits, and passes on the answers.
    async fn carry_batch(self: &Rc<Self>) {
        let slots = |ask: &ChargeRequest| ask.slots;
        let batch: Rc<[ChargeRequest]> = some_of(&self.joins, slots).into();
        let permits = some_of(&self.permits.waiting, |_| 1);
        self.gather();
        // A join that waited for slots of a lease may be behind a join that came later.
        let since = batch.iter().map(|ask| ask.since).min();
        let since = since.unwrap_or_else(|| self.now());
        self.carried.add(&batch);
        let (most, store) = (self.store_health.settings().timeout, self.link.store());
        // An operation older than the timeout was here while this process was suspended.
        let left = most.checked_sub(self.now().since(since)).unwrap_or(most);
        let asked = batch
            .iter()
            .flat_map(|ask| iter::repeat_n(ask.key.join(ask.limit), ask.slots));
        let asked: Vec<_> = asked.collect();
        let (answers, trip) = {
            let both = join(store.decide(&asked), self.permits.carry(store, &permits));
            self.link.run(within(left, pin!(both))).await
        };
        let (answers, permit_replies) = answers.unwrap_or_else(|_| {
            store.hang_up();
            let late = |count: usize| vec![Err(Error::Late); count];
            (late(asked.len()), vec![Err(Error::Late); permits.len()])
        });
        let errors = answers.iter().filter_map(|answer| answer.as_ref().err());
        let mut errors = errors.chain(
            permit_replies
                .iter()
                .filter_map(|reply| reply.as_ref().err()),
        );
        let outage = errors.find(|error| error.is_outage()).cloned();
        // Before the decisions, so that a request knows at once whether it has a permit.
        for (ask, reply) in permits.into_iter().zip(permit_replies) {
            self.count(&ask.zone, reply.as_ref().err());
            ask.reply.send(reply.map_err(|_| NoReply));
        }
        let mut rest = &answers[..];
        let request_answers = batch.iter().map(|ask| {
            let (answers, behind) = rest.split_at(ask.slots.min(rest.len()));
            rest = behind;
            answers
        });
        let request_answers = request_answers.collect();
        let respond = |ask: &ChargeRequest, answers: &[_]| self.respond(ask, answers, trip);
        let Some(error) = outage else {
            return self
                .carried
                .respond_in_order(&batch, request_answers, respond)
                .await;
        };
        // First in, first out: earlier batches fall back first, later ones last.
        self.carried.abandon(|other| !Rc::ptr_eq(other, &batch));
        batch
            .iter()
            .zip(request_answers)
            .for_each(|(ask, answers)| respond(ask, answers));
        self.link.lose(&error);
    }

    /// Answers an ask from the store's answers, then hands the slots ahead to the key's lease.
    fn respond(&self, ask: &ChargeRequest, answers: &[Result<StoreAnswer, Error>], trip: Trip) {
        let Some(answer) = answers.first() else {
            return;
        };
        let zone = &ask.key.zone;
        self.count(zone, answer.as_ref().err());
        let decision = answer.as_ref().map_err(|_| NoReply);
        let decision = decision.map(|answer| self.decision(&ask.key, answer, trip));
        if let Ok(decision) = &decision {
            let rate = decision.in_force.rate;
            zone.leases.follow(zone, ask.key.key(), rate);
        }
        let refill = ask.take_refill();
        let refilled = refill.as_ref().and_then(|_| {
            let reported = answers.iter().map_while(|it| it.as_ref().ok());
            let reported = reported.map(|answer| self.decision(&ask.key, answer, trip));
            decision.is_ok().then(|| Refilled {
                asked: trip.sent,
                decisions: reported.collect(),
            })
        });
        ask.respond(decision);
        if let Some(refill) = refill {
            refill.respond(refilled);
        }
    }

    /// Returns whether refunds or retunes are on their way to the store.
    pub(super) fn is_tidying(&self) -> bool {
        self.tidying.get() || self.permits.are_waiting()
    }

    /// Sends refunds and retunes, one batch after another.
    ///
    /// No request waits for them. Sent all at once, the refunds and retunes of thousands of waiters
    /// or keys would delay later joins by more than the timeout.
    fn tidy(self: &Rc<Self>) {
        if self.tidying.replace(true) {
            return;
        }
        let batcher = Rc::clone(self);
        actix_rt::spawn(async move {
            yield_now().await;
            let carried = async || batcher.carry_refunds().await | batcher.carry_retunes().await;
            while AssertUnwindSafe(carried())
                .catch_unwind()
                .await
                .unwrap_or(true)
            {}
            batcher.tidying.set(false);
        });
    }

    /// Sends a batch of refunds. Returns whether there were any.
    async fn carry_refunds(&self) -> bool {
        let batch = some_of(&self.refunds, |_| 1);
        if batch.is_empty() {
            return false;
        }
        let asked: Vec<_> = batch.iter().map(|(key, it)| key.refund(*it)).collect();
        let (answers, _) = self.link.run(self.link.store().refund(&asked)).await;
        for ((key, _), answer) in batch.iter().zip(answers) {
            self.note_result(&key.zone, answer.as_ref().err());
        }
        true
    }

    /// Sends a batch of retunes. Returns whether there were any.
    async fn carry_retunes(&self) -> bool {
        let batch = some_of(&self.retunes, |_| 1);
        if batch.is_empty() {
            return false;
        }
        let asked: Vec<_> = batch.iter().map(|(key, _)| key.retune()).collect();
        let (answers, trip) = self.link.run(self.link.store().retune(&asked)).await;
        drop(asked);
        for ((key, reply), answer) in batch.into_iter().zip(answers) {
            self.note_result(&key.zone, answer.as_ref().err());
            let in_force = answer.map(|answer| {
                let at = self.at(answer.now, trip);
                key.follows(answer.in_force, answer.now, at)
            });
            reply.send(in_force.map_err(|_| NoReply));
        }
        true
    }

    /// Converts a time that the store reported on this trip to the gateway's clock.
    fn at(&self, reported: Moment, trip: Trip) -> Moment {
        self.clock.note(trip, reported);
        self.clock.latest(reported)
    }

    /// Converts an answer of the store to the gateway's clock.
    fn decision(&self, key: &SharedKey, answer: &StoreAnswer, trip: Trip) -> Decision {
        let at = self.at(answer.now, trip);
        Decision {
            verdict: answer.verdict.on_clock(answer.now, at),
            account: answer.account(at),
            charge: answer.charge,
            in_force: key.follows(answer.in_force, answer.now, at),
            // The store decided after it was asked, so the slot is usable at least until then.
            usable_until: (answer.usable_until).map(|until| trip.sent + until.since(answer.now)),
        }
    }

    /// Counts an operation, and begins an outage if it failed because the store is unavailable.
    fn note_result(&self, zone: &StoreLink, error: Option<&Error>) {
        self.count(zone, error);
        if let Some(error) = error.filter(|error| error.is_outage()) {
            self.link.lose(error);
        }
    }

    /// Counts an operation. Logs a refusal.
    fn count(&self, zone: &StoreLink, error: Option<&Error>) {
        zone.count(store_result(error));
        if let Some(error) = error.filter(|error| !error.is_outage()) {
            let name = &zone.settings.name;
            if zone.settings.mask_keys {
                self.store_health.refused(name, &error.without_names());
            } else {
                self.store_health.refused(name, error);
            }
        }
    }
}

impl LinkUser for Batcher {
    /// Answers all operations that there is no decision.
    ///
    /// Does not wait for operations in flight: later joins would be decided before them.
    fn lost(&self) {
        self.carried.abandon(|_| true);
        // Callers that expect an answer get `NoReply` when their operation is dropped.
        let joins = self.joins.take().into_iter().map(|it| it.key.zone);
        let permits = self.permits.waiting.take().into_iter().map(|it| it.zone);
        let refunds = self.refunds.take().into_iter().map(|(key, _)| key.zone);
        let retunes = self.retunes.take().into_iter().map(|(key, _)| key.zone);
        let skipped = joins.chain(permits).chain(refunds).chain(retunes);
        skipped.for_each(|zone| zone.count(StoreResult::Skipped));
    }
}

/// Takes the first gathered operations: as many as fit in a batch, and at least one.
///
/// `slots` returns the number of slots of an operation.
fn some_of<T>(gathered: &RefCell<Vec<T>>, slots: impl Fn(&T) -> usize) -> Vec<T> {
    let mut gathered = gathered.borrow_mut();
    let mut taken = 0;
    let fits = |it: &&T| {
        taken += slots(it);
        taken <= MAX_SLOTS
    };
    let count = gathered
        .iter()
        .take(MAX_OPERATIONS)
        .take_while(fits)
        .count();
    let count = count.max(1).min(gathered.len());
    gathered.drain(..count).collect()
}
