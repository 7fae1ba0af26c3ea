//! Tests of a zone, with a bench that runs one supervisor on a virtual clock.

mod above_burst;
mod arrivals;
mod eviction;
mod handover;
mod heavy;
mod in_flight;
mod in_place;
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
use super::parameters::PublishedParameters;
use super::supervisor::{SupervisorActor, Tuning, ZoneSupervisor};
use super::{InFlightPermit, Join, Joining, Key, Order, Waiters, Zone, ZoneAdmission};
use crate::observe::metrics::{Rejected, ZoneMetrics};
use crate::time::clock;
use crate::time::pacer::Pacer;

const START: Moment = Moment::from_nanos(1_700_000_000_000_000_000);

/// Zone with one supervisor on this thread, on a clock that the test moves.
struct Bench {
    /// Zone under test. Leaked, so that joins that borrow it can be stored anywhere.
    zone: &'static Zone,
    pacer: Rc<Pacer>,
}

impl Bench {
    fn new(rate: &str, max_keys: usize) -> Self {
        Self::with(settings(rate, max_keys))
    }

    fn with((settings, tuning): (config::Zone, Tuning)) -> Self {
        let pacer = Pacer::standing_at(START);
        let metrics = Arc::<ZoneMetrics>::default();
        let supervisor = ZoneSupervisor::new(tuning, metrics, Rc::clone(&pacer));
        let supervisor = SupervisorActor::start(supervisor);
        Self {
            zone: Box::leak(Box::new(Zone::on_this_thread(
                PublishedParameters::new(settings, None),
                supervisor,
            ))),
            pacer,
        }
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
        self.zone = Box::leak(Box::new(self.zone.retune(
            settings,
            Vec::new(),
            None,
            clock::now(),
        )));
    }

    fn join(&self, key: &str, limit: Limit) -> Joining<'static> {
        self.zone.join(self.request(key, limit))
    }

    /// Admits a request that need not wait. Returns its permit.
    async fn pass(&self, key: &str, limit: Limit) -> Option<InFlightPermit<'static>> {
        self.join(key, limit).await.expect("a turn").take()
    }

    /// Makes `count` joins of a key, and waits until the actors have received them.
    async fn joins(&self, count: usize, key: &str, limit: Limit) -> Vec<Joining<'static>> {
        let joins = (0..count).map(|_| self.join(key, limit)).collect();
        Self::settle().await;
        joins
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

    async fn advance(&self, span: Duration) {
        self.advance_to(self.pacer.now() + span).await;
    }

    async fn advance_to(&self, moment: Moment) {
        self.pacer.advance(moment);
        Self::settle().await;
    }
}

/// Returns the settings of a zone with one supervisor.
fn settings(rate: &str, max_keys: usize) -> (config::Zone, Tuning) {
    let settings = config::Zone {
        name: "test".to_owned(),
        key: "$remote_addr".parse().unwrap(),
        algorithm: limit::Algorithm::default(),
        rate: rate.parse().unwrap(),
        max_keys: NonZeroUsize::new(max_keys).unwrap(),
        idle_timeout: Duration::from_secs(60),
        ipv6_prefix: 64,
        exempt: Vec::new(),
        store: config::StoreKind::Memory,
        on_store_failure: config::OnStoreFailure::Local,
        lease: Duration::ZERO,
        orphan: Duration::from_secs(75),
        plans: config::Plans::default(),
        new_keys: None,
        mask_keys: false,
    };
    let tuning = Tuning {
        zone: Arc::new(settings.clone()),
        rate: settings.rate,
        max_keys: settings.max_keys,
        new_keys: Arc::default(),
        overrides: Arc::default(),
        max_arrivals: super::arrivals::MAX_ARRIVALS,
        sharing: None,
    };
    (settings, tuning)
}

fn burst(burst: u32) -> Limit {
    Limit {
        burst,
        ..Limit::unlimited(Delay::Above(0), Cost::ONE)
    }
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

/// Uses the admission of a join, if there is one by now. Returns its permit.
async fn used<'z>(joining: &mut Joining<'z>) -> Option<InFlightPermit<'z>> {
    peek(joining)
        .await
        .expect("an answer")
        .expect("a turn")
        .take()
}

/// Returns how many of these joins are admitted by now, and uses their admissions.
async fn passed(joins: &mut Vec<Joining<'static>>) -> usize {
    let before = joins.len();
    let mut waiting = Vec::new();
    for mut joining in joins.drain(..) {
        match peek(&mut joining).await {
            Some(answer) => drop(answer.expect("a turn").take()),
            None => waiting.push(joining),
        }
    }
    *joins = waiting;
    before - joins.len()
}

/// Returns why a join was rejected.
async fn rejected(joining: &mut Joining<'_>) -> Option<Rejected> {
    let rejection = peek(joining).await?.err()?;
    assert!(rejection.retry_after > Duration::ZERO);
    Some(rejection.reason)
}

fn run<F: Future>(test: F) -> F::Output {
    actix_rt::System::new().block_on(test)
}
