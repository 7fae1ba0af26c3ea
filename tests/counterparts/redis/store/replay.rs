//! Replays a trace of one key with the functions of `limit`, and with the scripts.

use gateway::store::{self, Join, Refund, Store, StoreRate};
use limit::{self, Account, Algorithm, Bucket, Cost, Delay, Limit, Moment, Queue, Rate, Verdict};

use super::join;
use super::server::{Server, run};

/// A join, optionally with a change of an earlier charge just before it.
pub struct Step<'a> {
    pub now: Moment,
    pub pace: &'a StoreRate,
    pub limit: Limit,
    pub change: Option<Change>,
}

/// Change of the cost of an admitted request.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// Index of the request among those not changed yet, modulo their number.
    pub which: usize,
    /// New cost; `None` refunds the request.
    pub cost: Option<Cost>,
}

pub trait Replays {
    /// Returns the verdicts on the joins.
    fn replay(&self, algorithm: Algorithm, steps: &[Step]) -> Vec<Verdict>;
}

/// Charges that can still be changed.
struct Held<C> {
    charges: Vec<C>,
    /// Whether the last charge is also the last operation.
    ends_with_last: bool,
}

impl<C> Default for Held<C> {
    fn default() -> Self {
        Self {
            charges: Vec::new(),
            ends_with_last: false,
        }
    }
}

impl<C> Held<C> {
    fn add(&mut self, charge: C) {
        self.charges.push(charge);
        self.ends_with_last = true;
    }

    /// Removes the charge that is to be changed.
    ///
    /// A queue moves up all requests behind a refunded charge. Redis does so only if there are
    /// none.
    fn take(
        &mut self,
        algorithm: Algorithm,
        change: Change,
        cost: impl Fn(&C) -> Cost,
    ) -> Option<C> {
        let last = self.charges.len().checked_sub(1)?;
        let index = change.which % self.charges.len();
        let is_bill = change.cost > Some(cost(&self.charges[index]));
        if is_bill || !algorithm.queues() {
            self.ends_with_last = false;
            return Some(self.charges.remove(index));
        }
        let is_last = std::mem::take(&mut self.ends_with_last);
        (is_last && change.cost <= Some(cost(&self.charges[last])))
            .then(|| self.charges.remove(last))
    }
}

/// Replays with the functions of `limit`.
#[derive(Default)]
pub struct Memory;

enum Kept {
    Queue(Queue<()>),
    Account(Account),
}

impl Kept {
    fn retune(&mut self, rate: &mut Rate, to: Rate, now: Moment) {
        let from = std::mem::replace(rate, to);
        match self {
            _ if from == to => {}
            Self::Queue(queue) => queue.retune(to, now),
            Self::Account(account) => account.retune(from, to, now),
        }
    }

    fn decide(&mut self, rate: Rate, limit: Limit, now: Moment) -> (Verdict, limit::Charge) {
        let passing = limit::Charge::of_passing(now, limit.cost);
        match self {
            Self::Queue(queue) => {
                let (verdict, charge) = queue.charge(limit, now);
                (verdict, charge.unwrap_or(passing))
            }
            Self::Account(account) => (account.decide(rate, limit, now), passing),
        }
    }

    fn change(&mut self, rate: Rate, charge: limit::Charge, cost: Option<Cost>, now: Moment) {
        match (self, cost) {
            (Self::Queue(queue), None) => queue.refund(charge, now),
            (Self::Queue(queue), Some(cost)) => queue.settle(charge, cost, now),
            (Self::Account(account), None) => account.refund(rate, charge, now),
            (Self::Account(account), Some(cost)) => account.settle(rate, charge, cost, now),
        }
    }
}

impl Replays for Memory {
    fn replay(&self, algorithm: Algorithm, steps: &[Step]) -> Vec<Verdict> {
        let Some(first) = steps.first() else {
            return Vec::new();
        };
        let mut rate = first.pace.rate();
        let mut kept = if algorithm.queues() {
            Kept::Queue(Queue::new(rate, Bucket::new(), first.now))
        } else {
            Kept::Account(Account::new(algorithm))
        };
        let (mut held, mut verdicts) = (Held::default(), Vec::new());
        for step in steps {
            if let Some(change) = step.change
                && let Some(charge) = held.take(algorithm, change, limit::Charge::cost)
            {
                // A higher cost is charged as a join, which puts the rate in force.
                if change.cost > Some(charge.cost()) {
                    kept.retune(&mut rate, step.pace.rate(), step.now);
                }
                kept.change(rate, charge, change.cost, step.now);
            }
            kept.retune(&mut rate, step.pace.rate(), step.now);
            let (verdict, charge) = kept.decide(rate, step.limit, step.now);
            verdicts.push(verdict);
            if !matches!(verdict, Verdict::Reject(_)) {
                held.add(charge);
            }
        }
        verdicts
    }
}

/// Replays with the scripts.
pub struct Redis(Server);

impl Default for Redis {
    fn default() -> Self {
        Self(Server::start())
    }
}

/// A key in Redis.
struct InRedis<'a> {
    store: &'a Store,
    key: &'a [u8],
    algorithm: Algorithm,
    held: Held<store::Charge>,
    verdicts: Vec<Verdict>,
}

impl InRedis<'_> {
    fn join<'a>(&'a self, step: &Step<'a>, limit: Limit) -> Join<'a> {
        join(self.key, self.algorithm, step.pace, limit, Some(step.now))
    }

    /// Decides the joins of these steps.
    async fn decide(&mut self, steps: &[Step<'_>]) {
        let joins: Vec<_> = steps.iter().map(|it| self.join(it, it.limit)).collect();
        let answers = self.store.decide(&joins).await;
        for answer in answers {
            let answer = answer.expect("an answer");
            self.verdicts.push(answer.verdict);
            answer.charge.into_iter().for_each(|it| self.held.add(it));
        }
    }

    async fn change(&mut self, step: &Step<'_>, change: Change) {
        let taken = self.held.take(self.algorithm, change, store::Charge::cost);
        let Some(charged) = taken else {
            return;
        };
        let less = match change.cost {
            None => Some(charged),
            Some(cost) => charged.too_much(cost),
        };
        if let Some(less) = less {
            let refund = Refund {
                key: self.key,
                algorithm: self.algorithm,
                pace: step.pace,
                charge: less,
                at: Some(step.now),
            };
            let refunded = self.store.refund(&[refund]).await;
            assert!(refunded[0].is_ok());
        }
        let more = change.cost.and_then(|cost| cost.above(charged.cost()));
        if let Some(more) = more {
            let bill = self.join(step, Limit::unlimited(Delay::Never, more));
            let answer = self.store.decide(&[bill]).await.remove(0);
            assert!(answer.expect("an answer").charge.is_some());
        }
    }
}

impl Replays for Redis {
    fn replay(&self, algorithm: Algorithm, steps: &[Step]) -> Vec<Verdict> {
        // Each call has its own runtime, and so its own connection.
        let (store, key) = (self.0.store(), self.0.key());
        let mut in_redis = InRedis {
            store: &store,
            key: &key,
            algorithm,
            held: Held::default(),
            verdicts: Vec::new(),
        };
        run(async {
            for batch in steps.chunk_by(|_, next| next.change.is_none()) {
                if let Some(change) = batch[0].change {
                    in_redis.change(&batch[0], change).await;
                }
                in_redis.decide(batch).await;
            }
        });
        in_redis.verdicts
    }
}
