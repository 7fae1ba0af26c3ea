//! Batcher: sends the operations of a worker's zones to the store, many in one batch.
//!
//! A *charge* is a join, or another cost, that the store counts for a key. *Corrections* are
//! refunds and retunes (changes to the rate of this gateway's file); no request waits for them.

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

use super::batches_in_flight::BatchesInFlight;
use super::charge_request::{ChargeRequest, Reply};
use super::key_permits::{self, PermitsRequest};
use super::refill::Refilled;
use super::{Decision, NoReply, SharedKey, StoreLink};
use crate::observe::metrics::StoreResult;
use crate::store::{
    Charge, Error, InForce, Link, LinkUser, StoreAnswer, StoreClock, StoreHealth, Trip,
    store_result, within,
};
use crate::time::pacer::Pacer;

/// Number of batches in flight from which on a new batch waits, and gathers more operations.
///
/// It waits until another batch returns, but at most for [`MAX_GATHER_TIME`].
const ENOUGH_IN_FLIGHT: usize = 4;
/// Maximum time for which such a batch waits.
const MAX_GATHER_TIME: Duration = Duration::from_millis(1);
/// Upper bound of the operations of one kind in a batch: a batch must not block Redis for long.
const MAX_OPERATIONS: usize = 256;
/// Upper bound of the slots that a batch takes, including slots for leases.
const MAX_SLOTS: usize = 2048;
/// Upper bound of the operations of one kind that wait for a batch, except charges.
///
/// Further ones are dropped.
const MAX_WAITING: usize = 65_536;

/// Sends the operations of a worker's zones to the store.
///
/// Operations of the same moment share a batch. Charges and calls for permits go together, refunds
/// and retunes each apart.
///
/// The first operation that fails begins an outage of the worker's [`Link`]. Until the outage ends,
/// every caller is answered at once that there is no decision.
pub(super) struct Batcher {
    store_health: Arc<StoreHealth>,
    link: Rc<Link>,
    clock: Rc<StoreClock>,
    pacer: Rc<Pacer>,
    /// Charges that wait for their batch.
    charges: RefCell<Vec<ChargeRequest>>,
    /// Calls for permits that wait for their batch.
    permit_calls: RefCell<Vec<PermitsRequest>>,
    /// Refunds that wait for their batch.
    refunds: RefCell<Vec<(SharedKey, Charge)>>,
    /// Retunes that wait for their batch.
    retunes: RefCell<Vec<(SharedKey, Reply<InForce>)>>,
    /// Batches of charges in flight, for the order of their answers.
    batches_in_flight: BatchesInFlight,
    /// Number of batches of charges and calls for permits in flight.
    in_flight: Cell<usize>,
    /// Whether the next batch of charges and calls is about to be sent.
    is_gathering: Cell<bool>,
    /// Whether corrections are being sent.
    is_correcting: Cell<bool>,
    /// Notifies that a batch has returned.
    returned: Notify,
}

impl Batcher {
    /// Returns this thread's batcher for `store_health`.
    pub(super) fn to(store_health: &Arc<StoreHealth>, pacer: &Rc<Pacer>) -> Rc<Self> {
        Link::here(store_health).user(|link| Self {
            store_health: Arc::clone(store_health),
            link: Rc::clone(link),
            clock: link.clock(),
            pacer: Rc::clone(pacer),
            charges: RefCell::default(),
            permit_calls: RefCell::default(),
            refunds: RefCell::default(),
            retunes: RefCell::default(),
            batches_in_flight: BatchesInFlight::default(),
            in_flight: Cell::default(),
            is_gathering: Cell::default(),
            is_correcting: Cell::default(),
            returned: Notify::new(),
        })
    }

    pub(super) fn now(&self) -> Moment {
        self.pacer.now()
    }

    /// Returns whether the store is unavailable.
    pub(super) fn is_out(&self) -> bool {
        self.link.is_out()
    }

    /// Returns whether corrections or calls for permits wait for their batch or for a reply.
    pub(super) fn is_busy(&self) -> bool {
        let is_calling = self.in_flight.get() > 0 || !self.permit_calls.borrow().is_empty();
        self.is_correcting.get() || is_calling
    }

    /// Adds a charge to the next batch. Answers it at once if the store is unavailable.
    pub(super) fn charge(self: &Rc<Self>, request: ChargeRequest) {
        if self.is_out() {
            request.key.link.count(StoreResult::Skipped);
            return request.respond(Err(NoReply));
        }
        self.charges.borrow_mut().push(request);
        self.gather();
    }

    /// Makes a call for the permits of a key. It is sent with the charges of the same moment.
    pub(super) fn call_for_permits(self: &Rc<Self>, request: PermitsRequest) {
        if self.is_out() || self.permit_calls.borrow().len() >= MAX_WAITING {
            return request.link.count(StoreResult::Skipped);
        }
        self.permit_calls.borrow_mut().push(request);
        self.gather();
    }

    /// Refunds a charge.
    ///
    /// A refund that fails is lost. Then requests of its key leave too late once, never too early.
    pub(super) fn refund(self: &Rc<Self>, key: SharedKey, charge: Charge) {
        self.add_correction(&self.refunds, key, charge);
    }

    /// Asks the store to put the rate of this gateway's file into force for a key.
    pub(super) fn retune(self: &Rc<Self>, key: SharedKey, reply: Reply<InForce>) {
        self.add_correction(&self.retunes, key, reply);
    }

    /// Adds a correction of a key to those of its kind.
    fn add_correction<T>(
        self: &Rc<Self>,
        corrections: &RefCell<Vec<(SharedKey, T)>>,
        key: SharedKey,
        correction: T,
    ) {
        if self.is_out() || corrections.borrow().len() >= MAX_WAITING {
            return key.link.count(StoreResult::Skipped);
        }
        corrections.borrow_mut().push((key, correction));
        self.send_corrections();
    }

    /// Asks the store to forget a key's charges, or only the charges behind `last`.
    pub(super) fn forget(self: &Rc<Self>, key: SharedKey, last: Option<Charge>) {
        if self.is_out() {
            return key.link.count(StoreResult::Skipped);
        }
        let batcher = Rc::clone(self);
        actix_rt::spawn(async move {
            let store = batcher.link.store();
            let result = match last {
                None => store.forget(&key.name).await,
                Some(charge) => store.forget_behind(&key.refund(charge)).await,
            };
            batcher.note_result(&key.link, result.as_ref().err());
        });
    }

    /// Sends the next batch after all operations of this moment have arrived.
    fn gather(self: &Rc<Self>) {
        let is_idle = self.charges.borrow().is_empty() && self.permit_calls.borrow().is_empty();
        if is_idle || self.is_gathering.replace(true) {
            return;
        }
        let batcher = Rc::clone(self);
        actix_rt::spawn(async move {
            yield_now().await;
            if batcher.in_flight.get() >= ENOUGH_IN_FLIGHT {
                let _either = timeout(MAX_GATHER_TIME, batcher.returned.notified()).await;
            }
            batcher.is_gathering.set(false);
            batcher.in_flight.set(batcher.in_flight.get() + 1);
            // Later batches are sent even if one makes this task panic.
            let _panic = AssertUnwindSafe(batcher.send_batch()).catch_unwind().await;
            batcher.in_flight.set(batcher.in_flight.get() - 1);
            batcher.returned.notify_one();
            batcher.batches_in_flight.notify_answered();
            batcher.gather();
        });
    }

    /// Sends a batch of charges and calls for permits, and passes on the answers.
    async fn send_batch(self: &Rc<Self>) {
        let batch: Rc<[ChargeRequest]> = take_some(&self.charges, |request| request.slots).into();
        let permit_calls = take_some(&self.permit_calls, |_| 1);
        // The next batch has the operations that did not fit.
        self.gather();
        self.batches_in_flight.add(&batch);
        let (time_left, store) = (self.time_left(&batch), self.link.store());
        let joins = batch
            .iter()
            .flat_map(|request| iter::repeat_n(request.key.join(request.limit), request.slots));
        let joins: Vec<_> = joins.collect();
        let (replies, trip) = {
            let permits = key_permits::call(store, &permit_calls);
            let both = join(store.decide(&joins), permits);
            self.link.run(within(time_left, pin!(both))).await
        };
        let (answers, permit_replies) = replies.unwrap_or_else(|_too_late| {
            store.hang_up();
            let no_permits = vec![Err(Error::Late); permit_calls.len()];
            (vec![Err(Error::Late); joins.len()], no_permits)
        });
        let errors = answers.iter().filter_map(|answer| answer.as_ref().err());
        let permit_errors = permit_replies.iter().filter_map(|it| it.as_ref().err());
        let mut errors = errors.chain(permit_errors);
        let outage = errors.find(|error| error.is_outage()).cloned();
        // Replies about permits come first, so that an admitted request knows at once whether it
        // has a permit.
        for (request, reply) in permit_calls.into_iter().zip(permit_replies) {
            self.count(&request.link, reply.as_ref().err());
            request.reply.send(reply.map_err(|_| NoReply));
        }
        // Each request has as many answers as slots: its own, and those of its lease.
        let mut rest = &answers[..];
        let answers_by_request = batch.iter().map(|request| {
            let (own, others) = rest.split_at(request.slots.min(rest.len()));
            rest = others;
            own
        });
        let answers_by_request: Vec<_> = answers_by_request.collect();
        let respond = |request: &ChargeRequest, answers: &[_]| self.respond(request, answers, trip);
        let Some(error) = outage else {
            let responses =
                self.batches_in_flight
                    .respond_in_order(&batch, answers_by_request, respond);
            return responses.await;
        };
        // The batch failed. First in, first out: earlier batches get no decision first, then this
        // one, and at last the later ones (`lose`).
        self.batches_in_flight
            .abandon(|other| !Rc::ptr_eq(other, &batch));
        for (request, answers) in batch.iter().zip(answers_by_request) {
            respond(request, answers);
        }
        self.link.lose(&error);
    }

    /// Returns the maximum time for the answers to a batch.
    fn time_left(&self, batch: &[ChargeRequest]) -> Duration {
        // The oldest request need not be the first: a join may have waited for slots of a lease.
        let oldest = batch.iter().map(|request| request.since).min();
        let waited = oldest.map_or(Duration::ZERO, |oldest| self.now().since(oldest));
        let timeout = self.store_health.settings().timeout;
        // If a request is older than the timeout, this process was suspended meanwhile.
        timeout.checked_sub(waited).unwrap_or(timeout)
    }

    /// Answers a request with the store's first answer. Adds the other slots to the key's lease.
    fn respond(&self, request: &ChargeRequest, answers: &[Result<StoreAnswer, Error>], trip: Trip) {
        let Some(answer) = answers.first() else {
            return;
        };
        let (key, link) = (&request.key, &request.key.link);
        self.count(link, answer.as_ref().err());
        let decision = answer.as_ref().map_err(|_| NoReply);
        let decision = decision.map(|answer| self.decision(key, answer, trip));
        if let Ok(decision) = &decision {
            let rate = decision.in_force.rate;
            link.leases.adopt_rate(link, key.key(), rate);
        }
        let refill = request.take_refill();
        let has_slots = refill.is_some() && decision.is_ok();
        let refilled = has_slots.then(|| {
            let reported = answers.iter().map_while(|it| it.as_ref().ok());
            let decisions = reported.map(|answer| self.decision(key, answer, trip));
            Refilled {
                asked: trip.sent,
                decisions: decisions.collect(),
            }
        });
        request.respond(decision);
        if let Some(refill) = refill {
            refill.respond(refilled);
        }
    }

    /// Sends corrections, one batch after another.
    ///
    /// Sent all at once, the refunds and retunes of thousands of waiters or keys would delay later
    /// joins by more than the timeout.
    fn send_corrections(self: &Rc<Self>) {
        if self.is_correcting.replace(true) {
            return;
        }
        let batcher = Rc::clone(self);
        actix_rt::spawn(async move {
            yield_now().await;
            // `|` sends both: `||` would leave out the retunes while there are refunds.
            let send_some = async || batcher.send_refunds().await | batcher.send_retunes().await;
            // Later corrections are sent even if one makes this task panic.
            let catch = || AssertUnwindSafe(send_some()).catch_unwind();
            while catch().await.unwrap_or(true) {}
            batcher.is_correcting.set(false);
        });
    }

    /// Sends a batch of refunds. Returns whether there were any.
    async fn send_refunds(&self) -> bool {
        let batch = take_some(&self.refunds, |_| 1);
        if batch.is_empty() {
            return false;
        }
        let refunds = batch.iter().map(|(key, charge)| key.refund(*charge));
        let refunds: Vec<_> = refunds.collect();
        let (answers, _) = self.link.run(self.link.store().refund(&refunds)).await;
        for ((key, _), answer) in batch.iter().zip(answers) {
            self.note_result(&key.link, answer.as_ref().err());
        }
        true
    }

    /// Sends a batch of retunes. Returns whether there were any.
    async fn send_retunes(&self) -> bool {
        let batch = take_some(&self.retunes, |_| 1);
        if batch.is_empty() {
            return false;
        }
        let retunes: Vec<_> = batch.iter().map(|(key, _)| key.retune()).collect();
        let (answers, trip) = self.link.run(self.link.store().retune(&retunes)).await;
        drop(retunes);
        for ((key, reply), answer) in batch.into_iter().zip(answers) {
            self.note_result(&key.link, answer.as_ref().err());
            let in_force = answer.map(|answer| {
                let at = self.at(answer.now, trip);
                key.note_rate(answer.in_force, answer.now, at)
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
            in_force: key.note_rate(answer.in_force, answer.now, at),
            // Counted from the sending of the request, not from its arrival at the store: too early
            // rather than too late.
            usable_until: (answer.usable_until).map(|until| trip.sent + until.since(answer.now)),
        }
    }

    /// Counts an operation, and begins an outage if it failed because the store is unavailable.
    fn note_result(&self, link: &StoreLink, error: Option<&Error>) {
        self.count(link, error);
        if let Some(error) = error.filter(|error| error.is_outage()) {
            self.link.lose(error);
        }
    }

    /// Counts an operation. Logs a refusal.
    fn count(&self, link: &StoreLink, error: Option<&Error>) {
        link.count(store_result(error));
        if let Some(error) = error.filter(|error| !error.is_outage()) {
            let zone = &link.settings.name;
            if link.settings.mask_keys {
                self.store_health.note_refusal(zone, &error.without_names());
            } else {
                self.store_health.note_refusal(zone, error);
            }
        }
    }
}

impl LinkUser for Batcher {
    /// Answers all operations that there is no decision.
    ///
    /// Answers operations in flight, too. Otherwise later joins would be decided before them.
    fn note_outage(&self) {
        self.batches_in_flight.abandon(|_| true);
        // Callers that expect an answer get `NoReply` when their operation is dropped.
        let charges = self.charges.take().into_iter().map(|it| it.key.link);
        let permit_calls = self.permit_calls.take().into_iter().map(|it| it.link);
        let refunds = self.refunds.take().into_iter().map(|(key, _)| key.link);
        let retunes = self.retunes.take().into_iter().map(|(key, _)| key.link);
        let corrections = refunds.chain(retunes);
        for link in charges.chain(permit_calls).chain(corrections) {
            link.count(StoreResult::Skipped);
        }
    }
}

/// Takes the first of these operations: as many as fit in a batch, and at least one if any waits.
///
/// `slots`: returns the number of slots that an operation takes.
fn take_some<T>(operations: &RefCell<Vec<T>>, slots: impl Fn(&T) -> usize) -> Vec<T> {
    let mut operations = operations.borrow_mut();
    let mut taken = 0;
    let fits = |operation: &&T| {
        taken += slots(operation);
        taken <= MAX_SLOTS
    };
    let first = operations.iter().take(MAX_OPERATIONS);
    let count = first.take_while(fits).count();
    let count = count.max(1).min(operations.len());
    operations.drain(..count).collect()
}
