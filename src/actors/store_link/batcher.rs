use std::cell::{Cell, RefCell};
use std::future::Future;
use std::iter;
use std::panic::AssertUnwindSafe;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use actix::Recipient;
use futures_util::FutureExt;
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use super::ask::{Ask, PendingRefund, Retuning};
use super::offset::Offset;
use super::refill::{Refilled, Told};
use super::worker_outage::WorkerOutage;
use super::{Decision, NoReply, Retuned, SharedKey, StoreHealth, StoreLink, result_of};
use crate::limit::Moment;
use crate::observe::metrics::StoreResult;
use crate::store::{self, Charge, Error, Refund, Retune, Store, StoreAnswer};
use crate::time::pacer::Pacer;

/// With this many batches under way, the next one gathers until one returns or `GATHERED` is over.
const ENOUGH_UNDER_WAY: usize = 4;
const GATHERED: Duration = Duration::from_millis(1);
/// Most operations of one kind in a batch, so that it does not hold up Redis for others.
const MOST: usize = 256;
/// Most places that a batch takes, with those ahead.
const MOST_PLACES: usize = 2048;
/// Most refunds, and most retunes, that wait for their batch. More are given up.
const MOST_WAITING: usize = 65_536;

/// Carries a worker's operations to the store. Operations of the same moment share a batch.
///
/// When the store fails, it is not asked again until a write succeeds, which is tried at
/// intervals. Meanwhile every caller is told at once that there is no decision.
pub(super) struct Batcher {
    store_health: Arc<StoreHealth>,
    store: Store,
    pacer: Rc<Pacer>,
    offset: Cell<Offset>,
    joins: RefCell<Vec<Ask>>,
    /// The batches of joins that are under way, in order.
    carried: RefCell<Vec<Weak<[Ask]>>>,
    refunds: RefCell<Vec<PendingRefund>>,
    retunes: RefCell<Vec<Retuning>>,
    /// Whether refunds or retunes are under way.
    tidying: Cell<bool>,
    /// Whether the next batch is about to be sent.
    gathering: Cell<bool>,
    under_way: Cell<usize>,
    back: Notify,
    out: Cell<bool>,
}

thread_local! {
    static HERE: RefCell<Vec<Weak<Batcher>>> = const { RefCell::new(Vec::new()) };
}

impl Batcher {
    /// This thread's batcher to `store_health`.
    pub(super) fn to(store_health: &Arc<StoreHealth>, pacer: &Rc<Pacer>) -> Rc<Self> {
        HERE.with_borrow_mut(|here| {
            here.retain(|batcher| batcher.strong_count() > 0);
            let mut known = here.iter().filter_map(Weak::upgrade);
            if let Some(known) = known.find(|it| Arc::ptr_eq(&it.store_health, store_health)) {
                return known;
            }
            let new = Rc::new(Self::new(Arc::clone(store_health), Rc::clone(pacer)));
            here.push(Rc::downgrade(&new));
            new.connect();
            new
        })
    }

    fn new(store_health: Arc<StoreHealth>, pacer: Rc<Pacer>) -> Self {
        let settings = store_health.settings();
        let store = Store::new(settings.url.clone(), &settings.prefix, settings.timeout);
        Self {
            store_health,
            store,
            pacer,
            offset: Cell::default(),
            joins: RefCell::default(),
            carried: RefCell::default(),
            refunds: RefCell::default(),
            retunes: RefCell::default(),
            tidying: Cell::default(),
            gathering: Cell::default(),
            under_way: Cell::default(),
            back: Notify::new(),
            out: Cell::default(),
        }
    }

    /// Connects before the first operation.
    fn connect(self: &Rc<Self>) {
        let batcher = Rc::clone(self);
        actix_rt::spawn(async move {
            if let Err(error) = batcher.store.probe().await {
                batcher.give_up(&error);
            }
        });
    }

    pub(super) fn now(&self) -> Moment {
        self.pacer.now()
    }

    pub(super) fn is_out(&self) -> bool {
        self.out.get()
    }

    pub(super) fn ask(self: &Rc<Self>, ask: Ask) {
        if self.out.get() {
            ask.key.zone.count(StoreResult::Skipped);
            return ask.tell(Err(NoReply));
        }
        self.joins.borrow_mut().push(ask);
        self.gather();
    }

    /// Gives a charge back.
    ///
    /// A charge that cannot be given back is lost: its key is paced too slowly once, never too
    /// fast.
    pub(super) fn refund(self: &Rc<Self>, key: SharedKey, charge: Charge) {
        if self.out.get() || self.refunds.borrow().len() >= MOST_WAITING {
            return key.zone.count(StoreResult::Skipped);
        }
        let pending = PendingRefund { key, charge };
        self.refunds.borrow_mut().push(pending);
        self.tidy();
    }

    pub(super) fn retune(self: &Rc<Self>, key: SharedKey, reply_to: Recipient<Retuned>) {
        if self.out.get() || self.retunes.borrow().len() >= MOST_WAITING {
            key.zone.count(StoreResult::Skipped);
            reply_to.do_send(Retuned(Err(NoReply)));
            return;
        }
        let retuning = Retuning::new(key, reply_to);
        self.retunes.borrow_mut().push(retuning);
        self.tidy();
    }

    pub(super) fn forget(self: &Rc<Self>, key: SharedKey, last: Option<Charge>) {
        if self.out.get() {
            return key.zone.count(StoreResult::Skipped);
        }
        let batcher = Rc::clone(self);
        actix_rt::spawn(async move {
            let done = match last {
                None => batcher.store.forget(&key.name).await,
                Some(charge) => {
                    let last = Refund {
                        key: &key.name,
                        algorithm: key.zone.algorithm,
                        pace: key.pace(),
                        charge,
                        at: None,
                    };
                    batcher.store.forget_behind(&last).await
                }
            };
            batcher.tell_of(&key.zone, done.as_ref().err());
        });
    }

    /// Sends the next batch after all operations of this moment have arrived.
    fn gather(self: &Rc<Self>) {
        if self.joins.borrow().is_empty() || self.gathering.replace(true) {
            return;
        }
        let batcher = Rc::clone(self);
        actix_rt::spawn(async move {
            yield_now().await;
            if batcher.under_way.get() >= ENOUGH_UNDER_WAY {
                let _either = timeout(GATHERED, batcher.back.notified()).await;
            }
            batcher.gathering.set(false);
            batcher.under_way.set(batcher.under_way.get() + 1);
            // The batches that follow are carried even if one of them makes this task panic.
            let _panic = AssertUnwindSafe(batcher.carry_joins()).catch_unwind().await;
            batcher.under_way.set(batcher.under_way.get() - 1);
            batcher.back.notify_one();
            batcher.gather();
        });
    }

    async fn carry_joins(self: &Rc<Self>) {
        let batch: Rc<[Ask]> = some_joins_of(&self.joins).into();
        self.gather();
        let Some(first) = batch.first() else {
            return;
        };
        self.note_carried(&batch);
        let began = self.pacer.now();
        let left = self.timeout().saturating_sub(began.since(first.since));
        let asked = batch
            .iter()
            .flat_map(|ask| iter::repeat_n(ask.to_store(), ask.places));
        let asked: Vec<store::Join> = asked.collect();
        let answers = self.within(timeout(left, self.store.decide(&asked))).await;
        let answers = answers.unwrap_or_else(|_| {
            self.store.hang_up();
            vec![Err(Error::Late); asked.len()]
        });
        let received = self.pacer.now();
        let mut errors = answers.iter().filter_map(|answer| answer.as_ref().err());
        let outage = errors.find(|error| error.is_outage()).cloned();
        // First in, first out: those before these fall back first, and those behind them last.
        if outage.is_some() {
            self.abandon(|other| !Rc::ptr_eq(other, &batch));
        }
        let mut rest = &answers[..];
        for ask in batch.iter() {
            let (answers, behind) = rest.split_at(ask.places.min(rest.len()));
            rest = behind;
            self.tell(ask, answers, (began, received));
        }
        if let Some(error) = outage {
            self.give_up(&error);
        }
    }

    /// Tells an ask what the store answered to it, and then its key's lease of the places ahead.
    fn tell(
        &self,
        ask: &Ask,
        answers: &[Result<StoreAnswer, Error>],
        (began, received): (Moment, Moment),
    ) {
        let Some(answer) = answers.first() else {
            return;
        };
        let zone = &ask.key.zone;
        self.count(zone, answer.as_ref().err());
        let decision = answer.as_ref().map_err(|_| NoReply);
        let decision = decision.map(|answer| self.decision(&ask.key, answer, received));
        if let Ok(decision) = &decision {
            let rate = decision.in_force.rate;
            zone.leases.follow(zone, ask.key.key(), rate);
        }
        let refill = ask.take_refill();
        let refilled = refill.as_ref().and_then(|_| {
            let told = answers.iter().map_while(|it| it.as_ref().ok());
            let told = told.map(|answer| self.told(&ask.key, answer, (began, received)));
            decision.is_ok().then(|| Refilled {
                asked: began,
                decisions: told.collect(),
            })
        });
        ask.tell(decision);
        if let Some(refill) = refill {
            refill.tell(refilled);
        }
    }

    /// A decision about a place that was asked for at `began`.
    ///
    /// The store decided after that, so its place is not over before what this counts with.
    fn told(
        &self,
        key: &SharedKey,
        answer: &StoreAnswer,
        (began, received): (Moment, Moment),
    ) -> Told {
        let until = answer.usable_until;
        Told {
            decision: self.decision(key, answer, received),
            usable_until: until.map(|until| began + until.since(answer.now)),
        }
    }

    fn note_carried(&self, batch: &Rc<[Ask]>) {
        let mut carried = self.carried.borrow_mut();
        carried.retain(|other| other.strong_count() > 0);
        carried.push(Rc::downgrade(batch));
    }

    /// Tells the batches under way that there is no decision, in order, while `is_abandoned`.
    fn abandon(&self, is_abandoned: impl Fn(&Rc<[Ask]>) -> bool) {
        let carried = self.carried.borrow().clone();
        let batches = carried.iter().filter_map(Weak::upgrade);
        for batch in batches.take_while(is_abandoned) {
            batch.iter().for_each(|ask| ask.tell(Err(NoReply)));
        }
    }

    /// Whether refunds or retunes are on their way to the store.
    pub(super) fn is_tidying(&self) -> bool {
        self.tidying.get()
    }

    /// Sends refunds and retunes, one batch after another.
    ///
    /// No request waits for them. Sent all at once, those of thousands of waiters or keys would
    /// delay the joins behind them for longer than the timeout.
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
    async fn carry_refunds(self: &Rc<Self>) -> bool {
        let batch = some_of(&self.refunds);
        if batch.is_empty() {
            return false;
        }
        let asked: Vec<Refund> = batch.iter().map(PendingRefund::to_store).collect();
        let answers = self.within(self.store.refund(&asked)).await;
        for (pending, answer) in batch.iter().zip(answers) {
            self.tell_of(&pending.key.zone, answer.as_ref().err());
        }
        true
    }

    /// Sends a batch of retunes. Returns whether there were any.
    async fn carry_retunes(self: &Rc<Self>) -> bool {
        let batch = some_of(&self.retunes);
        if batch.is_empty() {
            return false;
        }
        let asked: Vec<Retune> = batch.iter().map(Retuning::to_store).collect();
        let answers = self.within(self.store.retune(&asked)).await;
        drop(asked);
        let received = self.pacer.now();
        for (retuning, answer) in batch.into_iter().zip(answers) {
            self.tell_of(&retuning.key.zone, answer.as_ref().err());
            let in_force = answer.map(|answer| {
                let at = self.own(answer.now, received);
                retuning.key.follows(answer.in_force, answer.now, at)
            });
            retuning.tell(in_force.map_err(|_| NoReply));
        }
        true
    }

    /// Runs an operation and measures its round trip.
    async fn within<T>(&self, asked: impl Future<Output = T>) -> T {
        let began = self.pacer.now();
        let answer = asked.await;
        self.store_health.asked(self.pacer.now().since(began));
        answer
    }

    fn timeout(&self) -> Duration {
        self.store_health.settings().timeout
    }

    /// Converts what the store told at `received` to the gateway's clock.
    fn own(&self, told: Moment, received: Moment) -> Moment {
        let mut offset = self.offset.get();
        let own = offset.own(told, received, self.timeout());
        self.offset.set(offset);
        own
    }

    fn decision(&self, key: &SharedKey, answer: &StoreAnswer, received: Moment) -> Decision {
        let at = self.own(answer.now, received);
        Decision {
            verdict: answer.verdict.on_clock(answer.now, at),
            account: answer.account(at),
            charge: answer.charge,
            in_force: key.follows(answer.in_force, answer.now, at),
        }
    }

    /// Counts an operation, and notes if the store is unavailable.
    fn tell_of(self: &Rc<Self>, zone: &StoreLink, error: Option<&Error>) {
        self.count(zone, error);
        if let Some(error) = error.filter(|error| error.is_outage()) {
            self.give_up(error);
        }
    }

    fn count(&self, zone: &StoreLink, error: Option<&Error>) {
        zone.count(result_of(error));
        if let Some(error) = error.filter(|error| !error.is_outage()) {
            if zone.mask_keys {
                self.store_health
                    .refused(&zone.zone, &error.without_names());
            } else {
                self.store_health.refused(&zone.zone, error);
            }
        }
    }

    /// Stops asking until the store is back.
    ///
    /// What is under way is not waited for: others that join meanwhile would be decided before it.
    fn give_up(self: &Rc<Self>, error: &Error) {
        if self.out.replace(true) {
            return;
        }
        let outage = WorkerOutage::begin(&self.store_health, error);
        self.abandon(|_| true);
        for ask in self.joins.take() {
            ask.key.zone.count(StoreResult::Skipped);
            ask.tell(Err(NoReply));
        }
        for pending in self.refunds.take() {
            pending.key.zone.count(StoreResult::Skipped);
        }
        for retuning in self.retunes.take() {
            retuning.key.zone.count(StoreResult::Skipped);
            retuning.tell(Err(NoReply));
        }
        let mut next_try = self.store.next_try();
        let batcher = Rc::downgrade(self);
        actix_rt::spawn(async move {
            loop {
                sleep(next_try).await;
                let Some(batcher) = batcher.upgrade() else {
                    return;
                };
                // A panic counts as a failed try: the store would never be asked again.
                let probed = AssertUnwindSafe(batcher.store.probe()).catch_unwind();
                if matches!(probed.await, Ok(Ok(()))) {
                    batcher.out.set(false);
                    return outage.end();
                }
                next_try = batcher.store.next_try();
            }
        });
    }
}

/// Takes the first of the gathered operations, as many as fit in a batch.
fn some_of<T>(gathered: &RefCell<Vec<T>>) -> Vec<T> {
    let mut gathered = gathered.borrow_mut();
    let count = gathered.len().min(MOST);
    gathered.drain(..count).collect()
}

/// As [`some_of`], with the places that are taken ahead.
fn some_joins_of(gathered: &RefCell<Vec<Ask>>) -> Vec<Ask> {
    let mut gathered = gathered.borrow_mut();
    let mut places = 0;
    let mut fits = |ask: &Ask| {
        places += ask.places;
        places <= MOST_PLACES
    };
    let count = gathered
        .iter()
        .take(MOST)
        .take_while(|ask| fits(ask))
        .count();
    let count = count.clamp(1.min(gathered.len()), MOST);
    gathered.drain(..count).collect()
}
