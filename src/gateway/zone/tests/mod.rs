//! Tests of a zone, with a bench that runs one supervisor on a virtual clock.
//!
//! A join *waits* until it is *admitted* or rejected. An admission must be *used* (`take`), or its
//! charge is refunded. To *settle* is to let the actors handle all their messages.

mod above_burst;
mod arrivals;
mod eviction;
mod handover;
mod heavy;
mod in_flight;
mod local;
mod model;
mod new_keys;
mod overrides;
mod panics;
mod plans;
mod take_permits;
mod wall_clock;

use std::collections::HashMap;
use std::future::poll_fn;
use std::num::{NonZeroU32, NonZeroUsize};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use limit::{Bucket, Charge, Cost, Delay, Excess, Limit, Moment, Queue, Rate, Ticket, Verdict};
use proptest::prelude::*;

use super::answer::Rejection;
use super::join::InFlightChange;
use super::{InFlightPermit, Join, Joining, Key, Order, Waiters, Zone, ZoneAdmission};
use crate::observe::metrics::{Rejected, count_alone};
use crate::store::StoreHealth;
use crate::time::clock;
use crate::time::pacer::Pacer;

const START: Moment = Moment::from_nanos(1_700_000_000_000_000_000);
const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

/// Zone with one supervisor on this thread, on a clock that the test moves.
struct Bench {
    /// Zone under test. Leaked, so that joins that borrow it can be stored anywhere.
    zone: &'static Zone,
    pacer: Rc<Pacer>,
}

impl Bench {
    fn new(rate: &str, max_keys: usize) -> Self {
        Self::with(settings(rate, max_keys), None)
    }

    /// Creates a zone with these settings. `store_health`: health of its store, if it is in one.
    fn with(settings: config::Zone, store_health: Option<Arc<StoreHealth>>) -> Self {
        let pacer = Pacer::standing_at(START);
        let zone = Zone::start_here(settings, Rc::clone(&pacer), START, store_health);
        let zone = Box::leak(Box::new(zone));
        Self { zone, pacer }
    }

    /// Creates a zone whose keys have no rate.
    fn without_rate() -> Self {
        let mut bench = Self::new("1r/s", 10);
        bench.retune(Rate::UNLIMITED);
        bench
    }

    fn retune(&mut self, rate: Rate) {
        self.set(config::Zone {
            rate,
            ..self.zone.settings().clone()
        });
    }

    fn set(&mut self, settings: config::Zone) {
        self.set_with(settings, Vec::new());
    }

    /// Applies new settings, with these changes of `in_flight` of limits.
    fn set_with(&mut self, settings: config::Zone, in_flight: Vec<InFlightChange>) {
        let zone = self.zone.retune(settings, in_flight, None, clock::now());
        self.zone = Box::leak(Box::new(zone));
    }

    fn join(&self, key: &str, limit: Limit) -> Joining<'static> {
        self.zone.join(self.request(key, limit))
    }

    /// Makes a join that the actors have received.
    async fn joined(&self, key: &str, limit: Limit) -> Joining<'static> {
        let joining = self.join(key, limit);
        Self::settle().await;
        joining
    }

    /// Makes `count` joins of a key that the actors have received.
    async fn joins(&self, count: usize, key: &str, limit: Limit) -> Vec<Joining<'static>> {
        let joins = (0..count).map(|_| self.join(key, limit)).collect();
        Self::settle().await;
        joins
    }

    /// Admits a request that need not wait. Returns its permit, if the limit has `in_flight`.
    async fn pass(&self, key: &str, limit: Limit) -> Option<InFlightPermit<'static>> {
        self.join(key, limit).await.expect("admitted").take()
    }

    /// Returns the reason for which a request is rejected that need not wait for its answer.
    async fn rejection(&self, key: &str, limit: Limit) -> Rejected {
        self.join(key, limit).await.err().expect("rejected").reason
    }

    /// Creates a request of this key and limit.
    fn request(&self, key: &str, limit: Limit) -> Join {
        let plan = self.zone.settings().plans.index_of(key.as_bytes());
        Join::new(Key::from(key.as_bytes()), plan, limit)
    }

    /// Creates a request in dry run.
    fn dry_run(&self, key: &str, limit: Limit) -> Join {
        Join {
            dry_run: true,
            ..self.request(key, limit)
        }
    }

    /// Lets the actors handle all pending messages.
    async fn settle() {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
    }

    /// Drops a join, an admission or a permit, and lets the actors handle this.
    async fn end<T>(dropped: T) {
        drop(dropped);
        Self::settle().await;
    }

    async fn advance(&self, span: Duration) {
        self.advance_to(self.pacer.now() + span).await;
    }

    /// Advances second by second, so that the supervisor sweeps its keys after each one.
    async fn advance_seconds(&self, count: u32) {
        for _ in 0..count {
            self.advance(SECOND).await;
        }
    }

    async fn advance_to(&self, moment: Moment) {
        self.pacer.advance(moment);
        Self::settle().await;
    }

    /// Checks that a join is admitted after exactly this time. Returns its permit.
    async fn admits_after<'z>(
        &self,
        span: Duration,
        joining: &mut Joining<'z>,
    ) -> Option<InFlightPermit<'z>> {
        self.advance(span.saturating_sub(MS)).await;
        assert!(waits(joining).await, "too early");
        self.advance(MS).await;
        used(joining).await
    }

    /// Returns the numbers of keys with an actor, and of keys without.
    async fn active_and_parked(&self) -> (usize, usize) {
        let stats = self.zone.stats(1).await;
        (stats.active, stats.parked)
    }
}

/// Returns the settings of a zone.
fn settings(rate: &str, max_keys: usize) -> config::Zone {
    let file = "[zones.test]\nkey = \"$remote_addr\"\nrate = \"1r/s\"";
    config::Zone {
        rate: rate.parse().unwrap(),
        max_keys: NonZeroUsize::new(max_keys).unwrap(),
        ..crate::test_settings::with(file).zones[0].clone()
    }
}

fn burst(burst: u32) -> Limit {
    Limit {
        burst,
        ..Limit::unlimited(Delay::Above(0), Cost::ONE)
    }
}

/// Returns the same limit with this cost of a request.
fn costing(cost: u32, limit: Limit) -> Limit {
    let cost = Cost::new(cost).unwrap();
    Limit { cost, ..limit }
}

/// Returns the same limit with `nodelay`: no request waits for its slot.
fn nodelay(limit: Limit) -> Limit {
    Limit {
        delay: Delay::Never,
        ..limit
    }
}

/// Returns a limit of at most `in_flight` running requests and `waiting` waiters.
fn at_most(in_flight: u32, waiting: u32) -> Limit {
    Limit {
        in_flight: NonZeroU32::new(in_flight),
        ..burst(waiting)
    }
}

/// Returns the result of a join so far.
async fn peek<'z>(joining: &mut Joining<'z>) -> Option<Result<ZoneAdmission<'z>, Rejection>> {
    poll_fn(|cx| {
        Poll::Ready(match Pin::new(&mut *joining).poll(cx) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        })
    })
    .await
}

/// Returns whether a join still waits. If not, its answer is lost.
async fn waits(joining: &mut Joining<'_>) -> bool {
    peek(joining).await.is_none()
}

/// Uses the admission of a join, which must be there by now. Returns its permit.
async fn used<'z>(joining: &mut Joining<'z>) -> Option<InFlightPermit<'z>> {
    let answer = peek(joining).await.expect("an answer");
    answer.expect("admitted").take()
}

/// Returns how many of these joins are admitted by now, and uses their admissions.
async fn passed(joins: &mut Vec<Joining<'static>>) -> usize {
    let before = joins.len();
    let mut waiting = Vec::new();
    for mut joining in joins.drain(..) {
        match peek(&mut joining).await {
            Some(answer) => drop(answer.expect("admitted").take()),
            None => waiting.push(joining),
        }
    }
    *joins = waiting;
    before - joins.len()
}

/// Returns why a join was rejected; `None` if it waits or is admitted.
async fn rejected(joining: &mut Joining<'_>) -> Option<Rejected> {
    let rejection = peek(joining).await?.err()?;
    assert!(rejection.retry_after > Duration::ZERO);
    Some(rejection.reason)
}

/// Checks that all these joins were rejected for this reason.
async fn all_rejected(joins: &mut [Joining<'_>], reason: Rejected) {
    for joining in joins {
        assert_eq!(rejected(joining).await, Some(reason));
    }
}

fn run<F: Future>(test: F) -> F::Output {
    actix_rt::System::new().block_on(test)
}

/// Runs a test whose panics no other test counts at the same time.
fn run_alone<F: Future>(test: F) -> F::Output {
    let _counted = count_alone();
    run(test)
}
