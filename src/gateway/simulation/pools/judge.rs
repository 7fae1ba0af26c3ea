//! Checks the use of shared permits while nothing fails.
//!
//! Nearly all permits must be used while requests wait, and no gateway may wait for too long.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use super::run::Pool;
use crate::simulation::scenario::Fault;

/// Interval between samples.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(2);
/// Length of a span whose use is checked. Requests must wait all the time.
const CHECKED_SPAN: Duration = Duration::from_secs(2);
/// Time after a fault in which nothing is checked.
///
/// Leases end, the store learns the holders, and other gateways are informed of a new one.
const RECOVERY: Duration = Duration::from_secs(6);
/// Longest time for which a gateway with short requests keeps a permit, at simulated delays.
const MAX_TURN: Duration = Duration::from_millis(400);

/// Permits in use and usable permits, summed over samples.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Use {
    used: f64,
    usable: f64,
}

impl Use {
    fn add(&mut self, used: usize, usable: usize) {
        self.used += used.min(usable) as f64;
        self.usable += usable as f64;
    }

    /// Returns the used share; 1 if no permit was usable.
    pub(super) fn part(self) -> f64 {
        if self.usable > 0.0 {
            self.used / self.usable
        } else {
            1.0
        }
    }
}

/// Sums over the spans checked so far.
#[derive(Debug, Default)]
pub(super) struct UseTotals {
    /// Number of spans that were checked.
    pub(super) spans: Cell<u64>,
    /// All samples at which requests waited and nothing failed.
    pub(super) all: Cell<Use>,
}

impl Pool {
    /// Returns whether nothing fails at this time, or has failed shortly before.
    fn is_quiet(&self, time: Duration) -> bool {
        // At first the store must learn the holders.
        let has_begun = time >= Duration::from_millis(3500);
        let mut faults = self.simulation.scenario.faults.iter();
        let is_near = |(begin, fault): &(Duration, Fault)| {
            (*begin..*begin + fault.lasts() + RECOVERY).contains(&time)
        };
        has_begun && !faults.any(is_near)
    }

    /// Returns the number of permits that are not withheld, as last reported to a gateway.
    fn available_permits(&self) -> usize {
        let gateways = self.simulation.gateways.borrow();
        let received = gateways.iter();
        let received = received.filter_map(|gateway| gateway.permits()?.pool);
        let withheld = received.map(|pool| pool.withheld).max();
        self.origin
            .most
            .get()
            .saturating_sub(withheld.unwrap_or_default())
    }

    /// Returns the minimum share of permits that must be in use while requests wait.
    ///
    /// A gateway with one or two clients cannot use a permit while its clients pause. If permits
    /// move between gateways, each moves again after every request and is unusable for two and a
    /// half round trips.
    fn least_use(&self) -> f64 {
        let mut clients = self.plan.clients.iter().filter(|clients| **clients > 0);
        let all: u64 = clients.clone().sum();
        if self.plan.rests == 0 && clients.all(|clients| *clients > 2) {
            return 0.95;
        }
        let (least, most) = self.simulation.scenario.delay;
        let travels = if all > self.available_permits() as u64 {
            (least + most).as_secs_f64() * 2500.0
        } else {
            0.0
        };
        let takes = (self.plan.takes.0 + self.plan.takes.1) as f64 / 2.0;
        0.95 * takes / (takes + 1.0 + travels)
    }

    /// Returns the maximum time for which a gateway may wait without starting a request.
    ///
    /// It is twice the fair time, with the same share for each client.
    fn longest_wait(&self) -> Duration {
        let takes = Duration::from_millis(self.plan.takes.1).max(MAX_TURN);
        let takes = if self.plan.long > 0 {
            takes.max(self.orphan())
        } else {
            takes
        };
        let clients: u64 = self.plan.clients.iter().sum();
        let rounds = clients.div_ceil(self.available_permits().max(1) as u64);
        takes * 2 * u32::try_from(rounds).unwrap_or(u32::MAX)
    }

    /// Fails if too few permits are used while requests wait, or if a gateway starts no request.
    pub(super) async fn judge_use(self: Rc<Self>) {
        let world = &self.simulation.world;
        let (mut span, mut since) = (Use::default(), world.now());
        let mut quiet_since = since;
        while world.now() < self.simulation.scenario.lasts {
            world.sleep(SAMPLE_INTERVAL).await;
            let now = world.now();
            // While all permits are withheld, no request can start.
            if !self.is_quiet(now) || self.available_permits() == 0 {
                quiet_since = now;
            }
            if quiet_since == now || self.origin.waiting() == 0 {
                (span, since) = (Use::default(), now);
                continue;
            }
            let (used, usable) = (self.origin.used(), self.available_permits());
            let mut all = self.checked.all.get();
            all.add(used, usable);
            self.checked.all.set(all);
            span.add(used, usable);
            if now >= since + CHECKED_SPAN {
                self.judge_span(span.part());
                (span, since) = (Use::default(), now);
            }
            if let Some((gateway, waits)) = self.origin.longest_without_start(quiet_since)
                && waits > self.longest_wait()
            {
                let most = self.longest_wait();
                return world.fail(format_args!(
                    "gateway {gateway} starts nothing for {waits:?}, and at most {most:?} is fair"
                ));
            }
        }
    }

    /// Fails if too few permits were used in a span.
    fn judge_span(&self, part: f64) {
        self.checked.spans.set(self.checked.spans.get() + 1);
        let world = &self.simulation.world;
        world.note(format_args!("{part:.3} of the permits are used"));
        if part < self.least_use() {
            world.fail(format_args!(
                "requests wait, and only {part:.3} of the permits are used"
            ));
        }
    }
}
