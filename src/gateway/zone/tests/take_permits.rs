//! Tests of requests that need permits in several zones.

use std::collections::VecDeque;

use tokio::task::JoinHandle;

use super::super::{next_ticket, take_permits};
use super::*;

const KEY: &str = "k";

impl Bench {
    /// Returns the numbers of running requests and of waiters of the key.
    async fn counts(&self) -> (usize, usize) {
        let keys = self.zone.keys(Order::Depth, 9).await;
        keys.first()
            .map_or((0, 0), |state| (state.in_flight, state.depth))
    }
}

type InFlightPermits = Vec<InFlightPermit<'static>>;

/// Starts a request that needs a permit in each of these zones, under their limits.
fn start(zones: &[(&Bench, Limit)]) -> JoinHandle<Result<InFlightPermits, Rejected>> {
    let zones: Vec<_> = zones.iter().map(|(it, limit)| (it.zone, *limit)).collect();
    actix_rt::spawn(async move {
        let ticket = next_ticket();
        let (mut turns, mut limits) = (Vec::new(), Vec::new());
        for (zone, limit) in zones {
            let joined = zone.join(Join {
                ticket,
                takes_permits_later: true,
                ..Join::new(Key::from(KEY.as_bytes()), None, limit)
            });
            let joined = joined.await;
            turns.push(joined.map_err(|rejection| rejection.reason)?);
            limits.push(limit);
        }
        let taken = take_permits(turns, &limits).await;
        let turns = taken.map_err(|(_, rejection)| rejection.reason)?;
        Ok(turns.into_iter().filter_map(ZoneAdmission::take).collect())
    })
}

/// Lets requests do all that they can, which needs several rounds: they ask zone after zone.
async fn settle() {
    for _ in 0..20 {
        Bench::settle().await;
    }
}

#[actix::test]
async fn at_most_burst_requests_wait_for_permits() {
    let (all, own) = (Bench::without_rate(), Bench::without_rate());
    let first = start(&[(&all, at_most(9, 200)), (&own, at_most(1, 2))]);
    settle().await;
    let others: Vec<_> = (0..4)
        .map(|_| start(&[(&all, at_most(9, 200)), (&own, at_most(1, 2))]))
        .collect();
    settle().await;
    let rejected = others.iter().filter(|it| it.is_finished()).count();
    assert_eq!((rejected, own.counts().await), (2, (1, 2)));
    let at_once = start(&[(&all, at_most(9, 200)), (&own, at_most(1, 0))]);
    settle().await;
    assert_eq!(at_once.await.unwrap().err(), Some(Rejected::InFlight));
    assert_eq!(all.counts().await, (1, 2), "it has left the other zone");
    // One of the waiters leaves.
    for it in others.iter().filter(|it| !it.is_finished()).take(1) {
        it.abort();
    }
    settle().await;
    assert_eq!((all.counts().await, own.counts().await), ((1, 1), (1, 1)));
    drop(first.await.unwrap().unwrap());
    settle().await;
    assert_eq!((all.counts().await.1, own.counts().await.1), (0, 0));
}

/// Zone with one permit, for which some request always waits.
struct Crowd {
    bench: Bench,
    running: Option<InFlightPermit<'static>>,
    waiting: VecDeque<Joining<'static>>,
}

impl Crowd {
    fn new() -> Self {
        Self {
            bench: Bench::without_rate(),
            running: None,
            waiting: VecDeque::new(),
        }
    }

    /// Ends the running request, adds one, and admits the next one if a permit is free.
    async fn turn(&mut self) {
        self.running = None;
        self.waiting
            .push_back(self.bench.join(KEY, at_most(1, 200)));
        self.admit().await;
    }

    async fn admit(&mut self) {
        settle().await;
        if self.running.is_none()
            && let Some(first) = self.waiting.front_mut()
            && let Some(turn) = peek(first).await
        {
            self.running = turn.expect("a turn").take();
            self.waiting.pop_front();
        }
    }
}

#[actix::test]
async fn a_request_gets_its_permits_though_no_two_are_ever_free_at_once() {
    let (mut left, mut right) = (Crowd::new(), Crowd::new());
    for crowd in [&mut left, &mut right] {
        for _ in 0..4 {
            crowd
                .waiting
                .push_back(crowd.bench.join(KEY, at_most(1, 200)));
        }
        crowd.admit().await;
    }
    let both = start(&[
        (&left.bench, at_most(1, 200)),
        (&right.bench, at_most(1, 200)),
    ]);
    let mut turns = 0;
    while !both.is_finished() {
        assert!(turns < 200, "it waits for ever");
        turns += 1;
        left.turn().await;
        right.admit().await;
        right.turn().await;
        left.admit().await;
    }
    assert_eq!(both.await.unwrap().unwrap().len(), 2);
    // The crowd's requests go on.
    left.admit().await;
    right.admit().await;
    assert!(left.running.is_some() && right.running.is_some());
}

/// Event of a trace.
#[derive(Clone, Debug)]
enum Step {
    /// Starts a request that needs permits in the zones of these bits.
    Come(usize),
    /// Ends the running request at this index.
    End(usize),
    /// Removes the waiting request at this index.
    Leave(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..8_usize).prop_map(Step::Come),
        3 => any::<usize>().prop_map(Step::End),
        1 => any::<usize>().prop_map(Step::Leave),
    ]
}

type Waiting = (usize, JoinHandle<Result<InFlightPermits, Rejected>>);

/// Three zones, with `in_flight` of one, two and one.
struct Zones {
    benches: [Bench; 3],
    waiting: Vec<Waiting>,
    running: Vec<(usize, InFlightPermits)>,
}

/// `in_flight` of the three zones.
const IN_FLIGHT: [u32; 3] = [1, 2, 1];

impl Zones {
    async fn step(&mut self, step: Step) {
        match step {
            Step::Come(needs) => {
                let zones = self.benches.iter().zip(IN_FLIGHT).enumerate();
                let zones = zones.filter(|(nth, _)| needs >> nth & 1 == 1);
                let zones: Vec<_> = zones
                    .map(|(_, (it, most))| (it, at_most(most, 200)))
                    .collect();
                self.waiting.push((needs, start(&zones)));
            }
            Step::End(index) if !self.running.is_empty() => {
                let index = index % self.running.len();
                self.running.remove(index);
            }
            Step::Leave(index) if !self.waiting.is_empty() => {
                let index = index % self.waiting.len();
                self.waiting.remove(index).1.abort();
            }
            Step::End(_) | Step::Leave(_) => {}
        }
        settle().await;
        while let Some(index) = self.waiting.iter().position(|(_, it)| it.is_finished()) {
            let (needs, permits) = self.waiting.remove(index);
            self.running.push((needs, permits.await.unwrap().unwrap()));
        }
    }

    /// Checks that no request waits while all its permits are free.
    ///
    /// At most one of the waiters may hold permits: one that may keep them after many attempts.
    async fn check(&self) -> Result<(), TestCaseError> {
        let mut free = 0;
        for (nth, (bench, most)) in self.benches.iter().zip(IN_FLIGHT).enumerate() {
            let here = |needs: usize| needs >> nth & 1;
            let running: usize = self.running.iter().map(|(needs, _)| here(*needs)).sum();
            let waiting: usize = self.waiting.iter().map(|(needs, _)| here(*needs)).sum();
            let (taken, depth) = bench.counts().await;
            prop_assert_eq!(taken + depth, running + waiting);
            prop_assert!(taken == running || taken == running + 1);
            prop_assert!(taken <= most as usize);
            free |= usize::from(taken < most as usize) << nth;
        }
        let mut waiting = self.waiting.iter();
        prop_assert!(!waiting.any(|(needs, _)| needs & free == *needs));
        Ok(())
    }
}

proptest! {
    #![proptest_config(testing::config())]

    #[test]
    fn all_permits_or_none_are_taken_and_no_wake_up_is_lost(
        steps in prop::collection::vec(step(), 1..25),
    ) {
        run(async {
            let mut zones = Zones {
                benches: [Bench::without_rate(), Bench::without_rate(), Bench::without_rate()],
                waiting: Vec::new(),
                running: Vec::new(),
            };
            for step in steps {
                zones.step(step).await;
                zones.check().await?;
            }
            while !zones.running.is_empty() {
                zones.step(Step::End(0)).await;
                zones.check().await?;
            }
            prop_assert!(zones.waiting.is_empty());
            Ok::<(), TestCaseError>(())
        })?;
    }
}
