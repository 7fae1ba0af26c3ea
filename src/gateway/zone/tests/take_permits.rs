//! Tests of requests that need permits in several zones: they take all of them, or none.

use std::collections::VecDeque;

use tokio::task::JoinHandle;

use super::super::{next_ticket, take_permits};
use super::*;

const KEY: &str = "k";

impl Bench {
    /// Returns the numbers of running requests and of waiters of the key.
    async fn counts(&self) -> (usize, usize) {
        self.running_and_waiting(KEY).await
    }
}

type InFlightPermits = Vec<InFlightPermit<'static>>;

/// Starts a request that needs a permit in each of these zones, under their limits.
fn start(zones: &[(&Bench, Limit)]) -> JoinHandle<Result<InFlightPermits, Rejected>> {
    let zones: Vec<_> = zones.iter().map(|(it, limit)| (it.zone, *limit)).collect();
    actix_rt::spawn(async move {
        let ticket = next_ticket();
        let (mut admissions, mut limits) = (Vec::new(), Vec::new());
        for (zone, limit) in zones {
            let joined = zone.join(Join {
                ticket,
                takes_permits_later: true,
                ..Join::new(Key::from(KEY.as_bytes()), None, limit)
            });
            let joined = joined.await;
            admissions.push(joined.map_err(|rejection| rejection.reason)?);
            limits.push(limit);
        }
        let taken = take_permits(admissions, &limits).await;
        let taken = taken.map_err(|(_, rejection)| rejection.reason)?;
        Ok(taken.into_iter().filter_map(ZoneAdmission::take).collect())
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
    let limits = [(&all, at_most(9, 200)), (&own, at_most(1, 2))];
    let first = start(&limits);
    settle().await;
    let others: Vec<_> = (0..4).map(|_| start(&limits)).collect();
    settle().await;
    let rejected = others.iter().filter(|it| it.is_finished()).count();
    assert_eq!((rejected, own.counts().await), (2, (1, 2)));
    let at_once = start(&[(&all, at_most(9, 200)), (&own, at_most(1, 0))]);
    settle().await;
    assert_eq!(at_once.await.unwrap().err(), Some(Rejected::InFlight));
    assert_eq!(all.counts().await, (1, 2), "it has left the other zone");
    let waiter = others.iter().find(|it| !it.is_finished());
    waiter.expect("a waiter").abort();
    settle().await;
    assert_eq!((all.counts().await, own.counts().await), ((1, 1), (1, 1)));
    drop(first.await.unwrap().unwrap());
    settle().await;
    assert_eq!((all.counts().await.1, own.counts().await.1), (0, 0));
}

/// Zone with one permit, for which other requests always wait.
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

    fn add_request(&mut self) {
        let joining = self.bench.join(KEY, at_most(1, 200));
        self.waiting.push_back(joining);
    }

    /// Ends the running request, adds one, and admits the next one if a permit is free.
    async fn replace_running(&mut self) {
        self.running = None;
        self.add_request();
        self.admit().await;
    }

    /// Admits the next request if a permit is free.
    async fn admit(&mut self) {
        settle().await;
        if self.running.is_none()
            && let Some(first) = self.waiting.front_mut()
            && let Some(answer) = peek(first).await
        {
            self.running = answer.expect("admitted").take();
            self.waiting.pop_front();
        }
    }
}

#[actix::test]
async fn a_request_gets_its_permits_though_no_two_are_ever_free_at_once() {
    let (mut left, mut right) = (Crowd::new(), Crowd::new());
    for crowd in [&mut left, &mut right] {
        (0..4).for_each(|_| crowd.add_request());
        crowd.admit().await;
    }
    let zones = [&left.bench, &right.bench].map(|it| (it, at_most(1, 200)));
    let both = start(&zones);
    let mut rounds = 0;
    while !both.is_finished() {
        assert!(rounds < 200, "it waits for ever");
        rounds += 1;
        left.replace_running().await;
        right.admit().await;
        right.replace_running().await;
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
    /// Starts a request that needs permits in the zones of these bits: bit n is zone n.
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

/// `in_flight` of three zones.
const IN_FLIGHT: [u32; 3] = [1, 2, 1];

/// Three zones, with waiting and running requests. Each has the bits of the zones that it needs.
struct Zones {
    benches: [Bench; 3],
    waiting: Vec<(usize, JoinHandle<Result<InFlightPermits, Rejected>>)>,
    running: Vec<(usize, InFlightPermits)>,
}

impl Zones {
    /// Does a step, and lets the requests do all that they can.
    async fn step(&mut self, step: Step) {
        match step {
            Step::Come(needs) => {
                let zones = self.benches.iter().zip(IN_FLIGHT).enumerate();
                let zones = zones.filter(|(nth, _)| needs >> nth & 1 == 1);
                let zones = zones.map(|(_, (bench, in_flight))| (bench, at_most(in_flight, 200)));
                let zones: Vec<_> = zones.collect();
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
        // Bits of the zones with a free permit.
        let mut free = 0;
        for (nth, (bench, in_flight)) in self.benches.iter().zip(IN_FLIGHT).enumerate() {
            let here = |needs: usize| needs >> nth & 1;
            let running: usize = self.running.iter().map(|(needs, _)| here(*needs)).sum();
            let waiting: usize = self.waiting.iter().map(|(needs, _)| here(*needs)).sum();
            let (taken, depth) = bench.counts().await;
            prop_assert_eq!(taken + depth, running + waiting);
            prop_assert!(taken == running || taken == running + 1);
            prop_assert!(taken <= in_flight as usize);
            free |= usize::from(taken < in_flight as usize) << nth;
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
                benches: IN_FLIGHT.map(|_| Bench::without_rate()),
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
