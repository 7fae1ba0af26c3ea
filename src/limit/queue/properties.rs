//! Property tests of the queue: any trace of operations is compared with the [model](super::model).
//!
//! A *charge* is what a request has raised the level of the bucket by. It is *refunded* if the
//! request leaves, and *settled* if its cost turns out to be another one. If that cost is higher,
//! the request is *billed*. A *ticket* identifies a waiter.
//!
//! The model counts levels in *parts*: `UNIT` parts are a request. A *family* is a list of paces
//! (rates) between which a level is converted without rounding. A *lane* of the queue has the
//! waiters with the same `delay`.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::FileFailurePersistence;

use super::model::{FAMILIES, Judgement, Model, Pace, UNIT, paces};
use super::*;
use crate::{Refusal, fixtures};

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Advances time by twelfths of the interval between two departures, plus some nanoseconds.
    Wait(u64, u64),
    /// A request with one of the limits joins.
    Join(Index),
    /// One of the waiters leaves.
    Leave(Index),
    /// One of the charges of departed requests is refunded.
    Refund(Index),
    /// One of the charges of departed requests is corrected to this cost.
    Settle(Index, u32),
    /// The rate changes to one of the paces.
    Retune(Index),
    /// The due waiters are taken.
    Take,
    /// The queue is dropped without waiters, and later resumed from its bucket.
    Park,
}

/// Way in which a request left the queue.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Exit {
    Passed,
    Rejected,
    Departed,
    Left,
    Dismissed,
}

/// Returns the charged cost of a waiter.
fn cost_of(queue: &Queue<u64>, ticket: Ticket) -> Cost {
    let (lane, index) = queue.find(ticket).expect("a waiter");
    queue.lanes[lane].charge(index).cost
}

/// Generates less than `count` steps. `retunes` and `refunds` are the weights of these steps.
fn steps(retunes: u32, refunds: u32, count: usize) -> impl Strategy<Value = Vec<Step>> {
    let index = any::<Index>;
    let wait = prop_oneof![
        4 => (0..14u64, Just(0)),
        3 => (0..14u64, 0..3u64),
        1 => (0..400u64, 0..3u64),
    ];
    let step = prop_oneof![
        8 => index().prop_map(Step::Join),
        4 => wait.prop_map(|(twelfths, nanos)| Step::Wait(twelfths, nanos)),
        2 => index().prop_map(Step::Leave),
        refunds => index().prop_map(Step::Refund),
        refunds => (index(), 1..9_u32).prop_map(|(which, cost)| Step::Settle(which, cost)),
        retunes => index().prop_map(Step::Retune),
        1 => Just(Step::Take),
        1 => Just(Step::Park),
    ];
    prop::collection::vec(step, 1..count)
}

fn limits() -> impl Strategy<Value = Vec<Limit>> {
    let delay = prop_oneof![
        3 => Just(Delay::Above(0)),
        2 => (0..6u32).prop_map(Delay::Above),
        1 => Just(Delay::Never),
    ];
    let wait = (0..4_000_000_000u64).prop_map(Duration::from_nanos);
    let max_wait = prop::option::weighted(0.15, wait);
    let burst = prop_oneof![0..8u32, 8..30u32];
    let cost = prop_oneof![Just(1), 1..9_u32];
    let above_burst = prop_oneof![2 => Just(0), 1 => 1..9_u32];
    let limit = (burst, delay, max_wait, cost, above_burst);
    let limit = limit.prop_map(|(burst, delay, max_wait, cost, above_burst)| Limit {
        burst,
        max_wait,
        above_burst,
        ..Limit::unlimited(delay, fixtures::cost(cost.min(burst + 1)))
    });
    prop::collection::vec(limit, 1..4)
}

fn starts() -> impl Strategy<Value = Moment> {
    prop_oneof![Just(0), Just(1_700_000_000_123_456_789)].prop_map(Moment::from_nanos)
}

fn family() -> impl Strategy<Value = Vec<Pace>> {
    prop::sample::select(FAMILIES.map(<[Pace]>::to_vec).to_vec())
}

/// Agreement between the queue and the model that a test requires.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Trust {
    /// Every verdict, instant and level is equal. Only exact refunds are tried.
    Exact,
    /// The model takes the queue's verdicts. Levels may differ by the rounding of retunes.
    Rounded,
    /// The model takes the queue's verdicts.
    ///
    /// After any refund the queue's level is at least the model's.
    AtLeast,
}

/// A queue and its model, driven together.
struct Twins {
    queue: Queue<u64>,
    model: Model,
    paces: Vec<Pace>,
    pace: Pace,
    limits: Vec<Limit>,
    now: Moment,
    /// Number of requests so far. A request is known by its number.
    count: u64,
    trust: Trust,
    /// Tolerance for rounding by retunes, in parts: the queue's levels may be lower by this.
    slack: i128,
    /// Charges of requests that have passed or departed.
    spent: Vec<(u64, Charge)>,
    exits: BTreeMap<u64, Exit>,
    /// Total cost that was refunded or billed after departures.
    changed: u32,
    /// Last of the requests whose charge was raised by a settlement.
    ///
    /// After that, the queue no longer knows which charges before it can be refunded in full.
    billed: u64,
    /// Instant, number and cost of each departure, in order.
    departures: Vec<(Moment, u64, Cost)>,
}

impl Twins {
    fn new(paces: Vec<Pace>, limits: Vec<Limit>, now: Moment, trust: Trust) -> Self {
        let pace = paces[0];
        Self {
            queue: Queue::new(pace.rate(), Bucket::new(), now),
            model: Model::new(pace),
            paces,
            pace,
            limits,
            now,
            count: 0,
            trust,
            slack: 0,
            spent: Vec::new(),
            exits: BTreeMap::new(),
            changed: 0,
            billed: 0,
            departures: Vec::new(),
        }
    }

    fn run(&mut self, steps: Vec<Step>) {
        for step in steps {
            self.step(step);
            self.compare();
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Wait(twelfths, nanos) => {
                let span = Duration::from_nanos(self.pace.twelfth() * twelfths + nanos);
                self.wait_until(self.now + span);
            }
            Step::Join(which) => {
                self.take_due();
                self.join(*which.get(&self.limits));
            }
            Step::Leave(which) if !self.model.waiting().is_empty() => {
                let (id, _) = *which.get(self.model.waiting());
                self.leave(id);
            }
            Step::Refund(which) if !self.spent.is_empty() => {
                self.refund(which.index(self.spent.len()));
            }
            Step::Settle(which, cost) if !self.spent.is_empty() => {
                self.settle(which.index(self.spent.len()), cost);
            }
            Step::Retune(which) => self.retune(*which.get(&self.paces)),
            Step::Take => self.take_due(),
            Step::Park if self.queue.depth() == 0 => self.park(),
            Step::Leave(_) | Step::Refund(_) | Step::Settle(..) | Step::Park => {}
        }
    }

    /// Advances time. Waiters that become due on the way leave at their due instants.
    fn wait_until(&mut self, then: Moment) {
        while let Some(due) = self.queue.due().filter(|due| *due <= then) {
            self.now = self.now.max(due);
            self.take();
        }
        self.now = then;
    }

    fn take_due(&mut self) {
        while self.queue.due().is_some_and(|due| due <= self.now) {
            self.take();
        }
    }

    fn take(&mut self) {
        let departure = self.queue.take_due(self.now).expect("it is due");
        let id = departure.waiter;
        let dues = self.model.dues(self.now);
        let (due, _) = dues.iter().find(|(_, other)| *other == id).expect("waits");
        assert!(departure.due >= self.at_the_earliest(*due), "too early");
        if self.trust == Trust::Exact {
            let next = self.model.next_due(self.now);
            assert_eq!(next, Some((departure.due, id)));
        }
        let mut waiting = self.model.waiting().iter();
        let (_, delay) = waiting.clone().find(|it| it.0 == id).expect("waits");
        let first = waiting.find(|(_, other)| other == delay);
        assert_eq!(first, Some(&(id, *delay)), "first in, first out");
        self.model.stop_waiting(id);
        self.spent.push((id, departure.charge));
        let cost = departure.charge.cost();
        self.departures.push((self.now, id, cost));
        self.record_exit(id, Exit::Departed);
    }

    fn record_exit(&mut self, id: u64, exit: Exit) {
        assert_eq!(self.exits.insert(id, exit), None, "{id} leaves once");
    }

    fn join(&mut self, limit: Limit) {
        let (id, now) = (self.count, self.now);
        self.count += 1;
        let before = format!("{:?}", self.queue);
        let (verdict, charge) = self.queue.join(limit, Ticket(id), now, || id);
        if self.trust == Trust::Exact {
            self.compare_verdict(limit, verdict);
        }
        let Some(charge) = charge else {
            assert!(matches!(verdict, Verdict::Reject(_)));
            let after = format!("{:?}", self.queue);
            assert_eq!(before, after, "a rejection changes nothing");
            return self.record_exit(id, Exit::Rejected);
        };
        assert_eq!(charge.at(), now);
        if let (Verdict::Delay { until, .. }, Delay::Above(delay)) = (verdict, limit.delay) {
            assert!(until > now);
            self.model.came(id, now, limit.cost, Some(delay));
        } else {
            self.model.came(id, now, limit.cost, None);
            self.spent.push((id, charge));
            self.departures.push((now, id, limit.cost));
            self.record_exit(id, Exit::Passed);
        }
    }

    /// Compares a verdict with the model's.
    fn compare_verdict(&self, limit: Limit, verdict: Verdict) {
        let (expected, level) = self.model.judge(limit, self.now);
        let (judgement, excess) = match verdict {
            Verdict::Pass { excess } => (Judgement::Pass, excess),
            Verdict::Delay { until, excess } => (Judgement::Delay(until), excess),
            Verdict::Reject(Refusal {
                reason,
                excess,
                retry_at,
            }) => {
                let rejects = |at| matches!(self.model.judge(limit, at).0, Judgement::Reject(_));
                assert!(!rejects(retry_at), "a retry is accepted");
                assert!(rejects(Moment::from_nanos(retry_at.as_nanos() - 1)));
                (Judgement::Reject(reason), excess)
            }
        };
        assert_eq!(judgement, expected);
        #[allow(clippy::cast_precision_loss)]
        let level = level as f64 / UNIT as f64;
        assert!((excess.requests() - level).abs() < 1e-9);
    }

    fn leave(&mut self, id: u64) {
        let overdue = self.queue.due().is_some_and(|due| due <= self.now);
        let cost = cost_of(&self.queue, Ticket(id));
        if overdue && self.trust == Trust::Exact && !self.is_whole(id, cost) {
            return;
        }
        let before = self.level();
        assert_eq!(self.queue.leave(Ticket(id)), Some(id));
        if !overdue {
            let whole = i128::from(cost.get()) * UNIT;
            assert_eq!(before - self.level(), whole, "no waiter costs a slot");
        }
        assert_eq!(self.queue.leave(Ticket(id)), None);
        self.model.cancel(id);
        self.record_exit(id, Exit::Left);
    }

    fn refund(&mut self, which: usize) {
        let (id, charge) = self.spent[which];
        let cost = charge.cost();
        if self.trust == Trust::Exact && !self.is_whole(id, cost) {
            return;
        }
        self.spent.remove(which);
        self.changed += cost.get();
        self.departures.retain(|(_, other, _)| *other != id);
        let before = self.level();
        self.queue.refund(charge, self.now);
        self.model.cancel(id);
        let given = before - self.level();
        let whole = i128::from(cost.get()) * UNIT;
        assert!((0..=whole).contains(&given), "gives back at most its cost");
    }

    fn settle(&mut self, which: usize, cost: u32) {
        let (id, charge) = self.spent[which];
        let cost = fixtures::cost(cost);
        let (less, more) = (charge.cost().above(cost), cost.above(charge.cost()));
        if self.trust == Trust::Exact {
            let is_exact = less.is_none_or(|less| self.is_whole(id, less))
                && (more.is_none() || self.model.never_empty_since(id, self.now));
            if !is_exact {
                return;
            }
        }
        if more.is_some() {
            self.billed = self.billed.max(id);
        }
        self.changed += charge.cost().get().abs_diff(cost.get());
        let before = self.level();
        self.queue.settle(charge, cost, self.now);
        self.model.settle(id, cost);
        self.spent[which].1 = charge.settled(cost);
        let added = self.level() - before;
        let in_parts = |cost: Option<Cost>| cost.map_or(0, |it| i128::from(it.get()) * UNIT);
        assert!((-in_parts(less)..=in_parts(more)).contains(&added));
    }

    /// Returns whether this part of a request's charge can be refunded in full.
    fn is_whole(&self, id: u64, part: Cost) -> bool {
        id >= self.billed && self.model.all_after_found(id, part, self.now)
    }

    fn retune(&mut self, pace: Pace) {
        let before: Vec<_> = self.queue.waiters().copied().collect();
        let request = pace.rate().ticks_per_request();
        if self.queue.rate().ticks_per_request() != request {
            self.slack += UNIT / request + 1;
        }
        self.queue.retune(pace.rate(), self.now);
        self.model.retuned(pace, self.now);
        self.pace = pace;
        let after: Vec<_> = self.queue.waiters().copied().collect();
        assert_eq!(before, after);
    }

    /// Drops a queue without waiters, and resumes it from its bucket. A drained bucket is dropped.
    fn park(&mut self) {
        let (rate, bucket) = (self.queue.rate(), self.queue.bucket());
        let bucket = if bucket.drained_at(rate) <= self.now {
            Bucket::new()
        } else {
            bucket
        };
        self.queue = Queue::new(rate, bucket, self.now);
        // The new queue refunds no charge of the old one, while the model would. A charge of this
        // very instant would pass for one of the new queue, so it is left out.
        if self.trust == Trust::Exact {
            self.spent.clear();
        } else {
            self.spent.retain(|(_, charge)| charge.at() < self.now);
        }
    }

    /// Returns the queue's level in the model's parts.
    fn level(&self) -> i128 {
        let request = self.queue.rate().ticks_per_request();
        let ticks = self.queue.bucket().tail() - line(self.queue.rate(), self.now);
        ticks.max(-request) * UNIT / request
    }

    /// Returns the earliest allowed departure for a waiter that the model has due at `due`.
    fn at_the_earliest(&self, due: Moment) -> Moment {
        let early = self.slack / self.pace.leak() + i128::from(self.slack > 0);
        let early = u64::try_from(early).expect("short");
        Moment::from_nanos(due.as_nanos().saturating_sub(early))
    }

    /// Compares the level and the next departure with the model's.
    fn compare(&self) {
        assert_eq!(self.queue.depth(), self.model.waiting().len());
        let (level, expected) = (self.level(), self.model.level(self.now));
        let due = self.queue.due();
        let next = self.model.next_due(self.now).map(|(due, _)| due);
        assert!(level >= expected - self.slack, "too much was given back");
        assert!(due >= next.map(|due| self.at_the_earliest(due)));
        if self.trust != Trust::AtLeast {
            assert!(level <= expected);
            assert!(due <= next);
        }
        if self.trust == Trust::Exact {
            assert_eq!(self.slack, 0);
        }
    }

    /// Lets every waiter leave, and checks that each request has left exactly once.
    fn finish(&mut self, rejects_all: bool) {
        if rejects_all {
            let (bucket, in_order) = (self.queue.bucket(), departures(&self.queue));
            let rejected = self.queue.reject_all();
            assert_eq!(self.queue.bucket(), bucket, "their charges stay");
            assert!(rejected.iter().eq(in_order.iter().map(|(id, _)| id)));
            for id in rejected {
                self.record_exit(id, Exit::Dismissed);
                self.model.stop_waiting(id);
            }
        } else {
            self.wait_until(self.now + Duration::from_secs(1_000_000));
        }
        self.compare();
        assert_eq!(self.queue.depth(), 0);
        assert_eq!(self.queue.due(), None);
        assert_eq!(self.queue.waiters().count(), 0);
        assert!(self.exits.keys().copied().eq(0..self.count));
    }
}

/// Drives a queue and its model through all steps, and ends as [`Twins::finish`] does.
fn drive(
    paces: Vec<Pace>,
    limits: Vec<Limit>,
    start: Moment,
    trust: Trust,
    (steps, rejects_all): (Vec<Step>, bool),
) {
    let mut twins = Twins::new(paces, limits, start, trust);
    twins.run(steps);
    twins.finish(rejects_all);
}

/// Saves seeds that failed in `properties.regressions`, beside this file.
fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..testing::config()
    }
}

proptest! {
    #![proptest_config(config())]

    /// Checks that leaving is exact at any time, and a refund where it promises to be.
    ///
    /// To drop a drained bucket changes nothing.
    #[test]
    fn the_queue_behaves_as_the_model(
        paces in family(),
        limits in limits(),
        start in starts(),
        steps in (steps(1, 2, 80), any::<bool>()),
    ) {
        drive(paces, limits, start, Trust::Exact, steps);
    }

    #[test]
    fn a_refund_never_exceeds_the_effect_of_its_request(
        paces in family(),
        limits in limits(),
        start in starts(),
        steps in (steps(1, 6, 80), any::<bool>()),
    ) {
        drive(paces, limits, start, Trust::AtLeast, steps);
    }

    #[test]
    fn retuning_loses_reorders_and_duplicates_no_waiter(
        pace in prop::sample::select(paces()),
        limits in limits(),
        start in starts(),
        steps in (steps(3, 0, 80), any::<bool>()),
    ) {
        let mut paces = paces();
        paces.insert(0, pace);
        drive(paces, limits, start, Trust::Rounded, steps);
    }

    /// Checks that in any window no more requests depart than rate and burst allow.
    ///
    /// An unused slot lets one more request through: at once if its instant has passed.
    #[test]
    fn in_any_window_an_unused_slot_allows_at_most_one_more_departure(
        pace in prop::sample::select(paces()),
        limits in limits(),
        start in starts(),
        steps in prop_oneof![steps(0, 0, 120), steps(0, 4, 120)],
    ) {
        let (most, is_one) = (level_at_departure(&limits), limits.len() == 1);
        let mut twins = Twins::new(vec![pace], limits, start, Trust::AtLeast);
        twins.run(steps);
        twins.finish(false);
        assert_smooth(&twins, most + i128::from(twins.changed));
        // Waiters do not depart closer than an interval, either.
        if !is_one || twins.changed > 0 {
            return Ok(());
        }
        let waited = |id: &u64| twins.exits[id] == Exit::Departed;
        let waited: Vec<_> = twins.departures.iter().filter(|(_, id, _)| waited(id)).collect();
        for pair in waited.windows(2) {
            let gap = pair[1].0.since(pair[0].0);
            // Each request departs at the first nanosecond after its exact instant.
            let cost = u64::from(pair[0].2.get());
            prop_assert!(gap + Duration::from_nanos(1) >= pace.rate().time_for(cost));
        }
    }

    #[test]
    fn a_rate_k_times_faster_makes_the_waits_k_times_shorter(
        count in 1..1_000u64,
        k in 1..1_000u64,
        joins in prop::collection::vec((0..2_000_000_000u64, 0..3u32), 1..40),
        leaves in prop::collection::vec(any::<Index>(), 0..10),
    ) {
        let rate = |count: u64| format!("{count}r/s").parse::<Rate>().expect("a rate");
        let mut now = Moment::from_nanos(1_700_000_000_000_000_000);
        let fill = |now: &mut Moment| {
            let mut queue = Queue::new(rate(count), Bucket::new(), *now);
            for (ticket, (gap, delay)) in (0..).zip(&joins) {
                *now = *now + Duration::from_nanos(gap / count);
                while queue.take_due(*now).is_some() {}
                let limit = fixtures::limit(50, Delay::Above(*delay));
                queue.join(limit, Ticket(ticket), *now, || ticket);
            }
            for leave in &leaves {
                queue.leave(Ticket(leave.index(joins.len()) as u64));
            }
            queue
        };
        let (mut plain, mut retuned) = (fill(&mut { now }), fill(&mut now));
        retuned.retune(rate(count * k), now);
        let end = Moment::from_nanos(u64::MAX);
        let leave = |queue: &mut Queue<u64>| {
            let left = std::iter::from_fn(|| queue.take_due(end));
            left.map(|it| (it.waiter, it.due.since(now).as_nanos())).collect::<Vec<_>>()
        };
        let (plain, retuned) = (leave(&mut plain), leave(&mut retuned));
        prop_assert_eq!(plain.len(), retuned.len());
        for ((waiter, before), (same, after)) in plain.into_iter().zip(retuned) {
            prop_assert_eq!(waiter, same);
            prop_assert!((u128::from(k) * after).abs_diff(before) <= u128::from(k));
        }
    }
}

proptest! {
    #![proptest_config(config())]

    /// Checks that `forget` keeps the order and the pace of the waiters.
    ///
    /// No waiter leaves later than before, or closer than an interval to the one ahead.
    ///
    /// The first leaves within one interval. A request that joins later leaves behind the waiters
    /// with its delay. A charge from before `forget` cannot be refunded.
    #[test]
    fn forget_keeps_the_order_and_the_pace_of_waiters(
        paces in prop::sample::select(paces()),
        limits in limits(),
        start in starts(),
        steps in steps(1, 2, 60),
        to_remove: Index,
    ) {
        let mut twins = Twins::new(vec![paces], limits, start, Trust::AtLeast);
        twins.run(steps);
        twins.take_due();
        let (mut queue, now, rate) = (twins.queue, twins.now, twins.pace.rate());
        let before = departures(&queue);
        queue.forget(now);
        prop_assert!(queue.bucket().excess(rate, now).requests() >= 0.0);
        let after = departures(&queue);
        prop_assert_eq!(after.len(), before.len());
        for delay in 0..30 {
            let in_lane = |(id, _): &&(u64, Moment)| twins.model.waiting().contains(&(*id, delay));
            let old: Vec<_> = before.iter().filter(in_lane).collect();
            let lane: Vec<_> = after.iter().filter(in_lane).collect();
            prop_assert_eq!(lane.len(), old.len());
            for ((id, due), (other, was)) in lane.iter().zip(&old) {
                prop_assert!(id == other && due <= was, "{:?} after {:?}", lane, old);
            }
            // A due instant before the epoch is shown as the epoch.
            for pair in lane.windows(2).filter(|pair| pair[0].1 > Moment::default()) {
                let gap = pair[1].1.since(pair[0].1) + Duration::from_nanos(1);
                prop_assert!(gap >= rate.interval(), "{:?}", lane);
            }
        }
        if let Some((_, first)) = after.first() {
            prop_assert!(first.since(now) <= rate.interval());
        } else {
            prop_assert_eq!(queue.bucket(), Bucket::new());
        }

        // No earlier charge can be refunded. If a waiter leaves, the waiters behind it move up.
        let bucket = queue.bucket();
        for (_, charge) in &twins.spent {
            queue.refund(*charge, now);
        }
        prop_assert_eq!(queue.bucket(), bucket);
        while queue.take_due(now).is_some() {}
        let waiting: Vec<u64> = queue.waiters().copied().collect();
        if !waiting.is_empty() {
            let (id, level) = (*to_remove.get(&waiting), queue.bucket().tail());
            let cost = cost_of(&queue, Ticket(id));
            prop_assert_eq!(queue.leave(Ticket(id)), Some(id));
            let cost = i128::from(cost.get());
            prop_assert_eq!(level - queue.bucket().tail(), cost * rate.ticks_per_request());
        }

        while queue.take_due(now).is_some() {}
        let limit = Limit { burst: 1_000, max_wait: None, ..twins.limits[0] };
        let newcomer = u64::MAX;
        let (verdict, _) = queue.join(limit, Ticket(newcomer), now, || newcomer);
        if let Delay::Above(delay) = limit.delay {
            let same = |id: u64| twins.model.waiting().contains(&(id, delay));
            let order = departures(&queue);
            let last = order.iter().rposition(|(id, _)| same(*id));
            let own = order.iter().position(|(id, _)| *id == newcomer);
            prop_assert!(own > last || last.is_none(), "{:?} {:?}", verdict, order);
        }
    }
}

/// Returns when each waiter would leave without further requests, in order of departure.
fn departures(queue: &Queue<u64>) -> Vec<(u64, Moment)> {
    let mut queue = queue.clone();
    let end = Moment::from_nanos(u64::MAX);
    std::iter::from_fn(|| queue.take_due(end).map(|it| (it.waiter, it.due))).collect()
}

/// Returns the largest number of requests that may still be in the bucket when one departs.
fn level_at_departure(limits: &[Limit]) -> i128 {
    let most = limits.iter().map(|limit| match limit.delay {
        Delay::Above(delay) => {
            (delay + limit.cost.above_one()).min(limit.burst + limit.above_burst)
        }
        Delay::Never => limit.burst,
    });
    i128::from(most.max().unwrap_or(0))
}

/// Asserts that requests of at most `rate * T + most + 1` in cost depart in any window `T`.
///
/// The window is a nanosecond longer, because each request departs at the first nanosecond after
/// its exact instant.
fn assert_smooth(twins: &Twins, most: i128) {
    for (first, (from, ..)) in twins.departures.iter().enumerate() {
        let mut count = 0;
        for (to, _, cost) in &twins.departures[first..] {
            count += i128::from(cost.get());
            let window = i128::try_from(to.since(*from).as_nanos()).expect("short") + 1;
            let allowed = twins.pace.leak() * window + (most + 1) * UNIT;
            assert!(count * UNIT <= allowed, "{count} in {window} ns");
        }
    }
}
