//! Property tests of outages of an origin.
//!
//! An *unsent* request had left the gate, could not be sent, and waits again before the queue.

use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::Index;
use testing::config;

use super::*;
use crate::fixtures::{START, at, ms};
use crate::gate::{Admission, TimeoutReason, WaitLimits, WaitTimeout};
use crate::{Cost, GateLimits, Share};

#[derive(Clone, Debug)]
enum Step {
    /// A request of this key joins.
    Join(u8),
    /// One of the waiters disconnects.
    Leave(Index),
    /// One of the requests at the origin ends.
    Done(Index),
    /// One of the requests at the origin could not be sent: an outage begins.
    Unsent(Index),
    /// The outage ends.
    Back,
}

fn limits() -> impl Strategy<Value = GateLimits> {
    let rate = prop_oneof![Just("none"), Just("3r/s"), Just("100r/s"), Just("7r/250ms")];
    (rate, prop::option::of(1_usize..6)).prop_map(|(rate, max_in_flight)| GateLimits {
        rate: rate.parse().ok(),
        max_in_flight,
        ..GateLimits::NONE
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..4_u8).prop_map(Step::Join),
        1 => any::<Index>().prop_map(Step::Leave),
        3 => any::<Index>().prop_map(Step::Done),
        2 => any::<Index>().prop_map(Step::Unsent),
        2 => Just(Step::Back),
    ]
}

/// A request that has left the gate. `name` counts joins, `number` counts departures.
#[derive(Clone, Copy, Debug)]
struct Left {
    name: u32,
    key: u8,
    number: u64,
    due: Moment,
}

/// A gate, and what the test knows of its requests.
#[derive(Debug)]
struct World {
    /// A waiter is the name and the key of its request.
    gate: Gate<u8, (u32, u8)>,
    now: Moment,
    /// Name, key and position of each waiter.
    waiting: Vec<(u32, u8, GatePosition)>,
    /// In the order of their departures.
    at_origin: Vec<Left>,
    /// Due instant of the last request that the origin has received.
    last_sent: Option<Moment>,
    /// End of the last outage, departures since, and their bound without a rate.
    ///
    /// The bound grows by one each [`RAMP_STEP`] in addition. `None`: the queue was empty in
    /// between.
    since_outage: Option<(Moment, usize, usize)>,
}

impl World {
    /// Checks the departure of a request against the rules.
    fn depart(
        &mut self,
        (name, key): (u32, u8),
        number: u64,
        due: Moment,
    ) -> Result<(), TestCaseError> {
        prop_assert!(!self.gate.is_out(), "nobody leaves in an outage");
        let stayed = self.at_origin.last().map(|it| it.due);
        let last = stayed.max(self.last_sent);
        if let (Some(rate), Some(last)) = (self.gate.limits().rate, last) {
            let apart = due.since(last) + Duration::from_nanos(1);
            prop_assert!(apart >= rate.interval(), "{apart:?}");
        }
        if let Some((end, departures, most)) = &mut self.since_outage {
            *departures += 1;
            let steps = due.since(*end).as_millis() / RAMP_STEP.as_millis();
            let most = *most + usize::try_from(steps).unwrap_or(usize::MAX);
            let is_paced = *departures <= most;
            prop_assert!(is_paced, "{departures} of {most} leave after an outage");
        }
        self.at_origin.push(Left {
            name,
            key,
            number,
            due,
        });
        let most = self.gate.limits().max_in_flight;
        prop_assert!(most.is_none_or(|most| self.at_origin.len() <= most));
        Ok(())
    }

    /// Lets the requests leave that are due by `until`.
    fn run(&mut self, until: Moment) -> Result<(), TestCaseError> {
        while let Some(release) = self.gate.take(until) {
            let (name, key) = release.waiter;
            let found = self.waiting.iter().position(|it| it.0 == name);
            prop_assert!(found.is_some(), "nobody leaves twice");
            let (_, _, position) = self.waiting.remove(found.unwrap_or_default());
            // Unsent requests go first, in the old order. Then each key keeps its order.
            let heads = self.waiting.iter().filter_map(|it| match it.2 {
                GatePosition::AtHead(number) => Some(number),
                GatePosition::InQueue(_) => None,
            });
            let before = heads.min();
            match position {
                GatePosition::AtHead(number) => {
                    prop_assert_eq!(number, release.number);
                    prop_assert!(before.is_none_or(|before| number < before));
                }
                GatePosition::InQueue(_) => {
                    prop_assert_eq!(before, None);
                    let older = self.waiting.iter().any(|it| it.1 == key && it.0 < name);
                    prop_assert!(!older, "a key keeps its order");
                }
            }
            self.depart((name, key), release.number, release.due)?;
            if self.waiting.is_empty() {
                self.since_outage = None;
            }
        }
        self.now = until;
        Ok(())
    }

    fn step(&mut self, name: u32, step: &Step) -> Result<(), TestCaseError> {
        let now = self.now;
        match *step {
            Step::Join(key) => {
                let share = Share::of(key);
                match self.gate.join(&share, Cost::ONE, now, || (name, key)) {
                    Admission::Passed => {
                        self.depart((name, key), self.gate.departures(), now)?;
                    }
                    Admission::Waiting(position) => self.waiting.push((name, key, position)),
                    Admission::Rejected(full) => prop_assert!(false, "{full:?}"),
                }
            }
            Step::Leave(index) if !self.waiting.is_empty() => {
                let (name, key, position) = self.waiting.remove(index.index(self.waiting.len()));
                prop_assert_eq!(self.gate.leave(&position), Some((name, key)));
                if self.waiting.is_empty() {
                    self.since_outage = None;
                }
            }
            Step::Done(index) if !self.at_origin.is_empty() => {
                let done = self.at_origin.remove(index.index(self.at_origin.len()));
                self.last_sent = self.last_sent.max(Some(done.due));
                self.gate.give_back(now);
                if let Some((.., most)) = &mut self.since_outage {
                    *most += 2;
                }
            }
            Step::Unsent(index) if !self.at_origin.is_empty() => {
                let left = self.at_origin.remove(index.index(self.at_origin.len()));
                self.gate.begin_outage();
                self.since_outage = None;
                let waiter = (left.name, left.key);
                let position = self.gate.put_back(left.number, left.key, 1, now, waiter);
                self.waiting.push((left.name, left.key, position));
            }
            Step::Back if self.gate.is_out() => {
                self.gate.end_outage(now);
                let is_paced = self.gate.limits().rate.is_some();
                let starts = !is_paced && !self.waiting.is_empty();
                self.since_outage = starts.then_some((now, 0, 1));
            }
            _ => {}
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(config())]

    /// Checks the rules of a gate for any sequence of outages.
    ///
    /// Every request is at the origin, done, removed or waiting, exactly once. No request leaves in
    /// an outage. Departures that the origin has received are never closer than an interval. Unsent
    /// requests leave first, in the old order, and each key keeps its order. Without a rate no
    /// burst follows. No request waits while the origin is reachable, the slot has come and a
    /// permit is free.
    #[test]
    fn any_outages_keep_the_rules(
        limits in limits(),
        steps in prop::collection::vec((step(), 0_u64..300), 1..200),
    ) {
        let mut world = World {
            gate: Gate::new(limits),
            now: START,
            waiting: Vec::new(),
            at_origin: Vec::new(),
            last_sent: None,
            since_outage: None,
        };
        for (name, (step, millis)) in (0..).zip(steps) {
            let until = world.now + ms(millis);
            world.run(until)?;
            world.step(name, &step)?;
            world.run(until)?;
            let gate = &world.gate;
            let counts = (world.waiting.len(), world.at_origin.len());
            prop_assert_eq!((gate.depth(), gate.in_flight()), counts);
            let waits_alone = !gate.is_out() && gate.is_below_limit() && counts.0 > 0;
            prop_assert_eq!(gate.due().is_some(), waits_alone);
        }
        let mut left = world.gate.clear();
        left.sort_unstable();
        let mut waiting: Vec<_> = world.waiting.iter().map(|it| (it.0, it.1)).collect();
        waiting.sort_unstable();
        prop_assert_eq!(left, waiting);
    }

    /// Checks timeouts on a virtual clock, with any arrivals and outages.
    ///
    /// Each request is sent or times out, exactly once. It times out because of the origin only in
    /// an outage, after exactly `hold`. In an outage no request waits longer.
    #[test]
    fn requests_are_held_for_exactly_hold(
        limits in limits(),
        hold in 1_u64..2000,
        queue_timeout in 1_u64..2000,
        // Instant and key of each request.
        mut arrivals in prop::collection::vec((0_u64..6000, 0..4_u8), 1..60),
        // Time before each outage, and its length.
        lengths in prop::collection::vec((1_u64..1500, 1_u64..2500), 0..5),
    ) {
        let waits = WaitLimits {
            queue_timeout: ms(queue_timeout),
            hold: ms(hold),
            max_wait: None,
        };
        // Begin (true) and end of each outage.
        let mut changes = Vec::new();
        let mut end = 0;
        for (apart, length) in lengths {
            changes.extend([(end + apart, true), (end + apart + length, false)]);
            end += apart + length;
        }
        arrivals.sort_unstable();
        let (mut gate, mut out_since) = (Gate::<u8, usize>::new(limits), None);
        let mut waiting: Vec<(usize, WaitTimeout, Moment, GatePosition)> = Vec::new();
        // For each request, how often it was sent or timed out.
        let mut fates = vec![0; arrivals.len()];
        for millis in 0..12_000 {
            let now = at(millis);
            while let Some(release) = gate.take(now) {
                waiting.retain(|it| it.0 != release.waiter);
                fates[release.waiter] += 1;
                gate.give_back(now);
            }
            for (_, is_out) in changes.iter().filter(|(moment, _)| *moment == millis) {
                if *is_out {
                    gate.begin_outage();
                } else {
                    gate.end_outage(now);
                }
                out_since = is_out.then_some(now);
                for (_, timeout, ..) in &mut waiting {
                    timeout.note(out_since, now);
                }
            }
            let comes = arrivals.iter().enumerate().filter(|(_, it)| it.0 == millis);
            for (name, (_, key)) in comes {
                match gate.join(&Share::of(*key), Cost::ONE, now, || name) {
                    Admission::Passed => {
                        prop_assert_eq!(out_since, None);
                        fates[name] += 1;
                        gate.give_back(now);
                    }
                    Admission::Waiting(position) => {
                        let mut timeout = WaitTimeout::new(waits, now, None);
                        timeout.note(out_since, now);
                        waiting.push((name, timeout, now, position));
                    }
                    Admission::Rejected(full) => prop_assert!(false, "{full:?}"),
                }
            }
            waiting.retain(|(name, timeout, _, position)| {
                let (until, _) = timeout.timeout_at();
                if until <= now {
                    fates[*name] += 1;
                    gate.leave(position);
                }
                until > now
            });
            for (_, timeout, joined, _) in &waiting {
                let (until, reason) = timeout.timeout_at();
                if let Some(since) = out_since {
                    // The hold counts from the first outage in which it waited: this one, or an
                    // earlier one.
                    let latest = since.max(*joined) + waits.hold;
                    prop_assert_eq!(reason, TimeoutReason::Hold);
                    prop_assert!(until <= latest && until >= *joined + waits.hold);
                } else {
                    prop_assert_eq!(reason, TimeoutReason::QueueTimeout);
                }
            }
        }
        prop_assert!(fates.iter().all(|fate| *fate == 1), "{fates:?}");
    }
}
