//! Invariant: keys have fair shares of a shared gate.
//!
//! A gate bounds the pace of all requests to an origin. Gateways claim its *slots*, the instants at
//! which requests leave, from the store. Keys and classes of keys have weights. A *lane* is a queue
//! of requests: those of a key and a class at one gateway. A method with the name of an event, such
//! as `arrives`, records the event.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use super::{Checked, GateRequest};
use crate::simulation::scenario::Scenario;

/// Time until waiting requests of a gateway are known, without the latency of the store.
///
/// A gateway reports at least every 25 ms, and slots are granted 50 ms ahead.
const SETTLED: Duration = Duration::from_millis(100);
/// Lowest rate that is checked, in requests per second.
///
/// At slower rates few slots are granted ahead, and the first gateway to claim gets more for a
/// while.
const SLOWEST: f64 = 50.0;
/// Allowed deviation of a key's use from its share, in seconds: twice the time that slots are
/// granted ahead.
const MAX_DEVIATION: f64 = 0.1;

/// Invariant: while the same keys wait at all gateways, each gets its share of the departures.
///
/// Shares are divided among the classes by weight, and in each class among the keys. A key that
/// waits at several gateways gets an equal part of its share at each.
pub(super) struct Fairness {
    scenario: Rc<Scenario>,
    origins: Vec<Origin>,
    checks: u64,
}

/// Gateway, class and key.
type Lane = (usize, usize, usize);

/// State of an origin.
#[derive(Default)]
struct Origin {
    /// Number of waiting requests, by lane.
    waiting: BTreeMap<Lane, u64>,
    /// Present period in which the same keys wait.
    window: Option<Window>,
}

/// A period in which the same keys wait.
struct Window {
    /// Departures are counted from this time.
    from: Duration,
    /// Expected share of the departures, by lane.
    parts: BTreeMap<Lane, f64>,
    /// Departures, by lane.
    left: BTreeMap<Lane, u64>,
    /// Number of all departures.
    all: u64,
}

impl Fairness {
    pub(super) fn new(scenario: &Rc<Scenario>) -> Self {
        let origins = scenario.origins.iter().map(|_| Origin::default());
        Self {
            origins: origins.collect(),
            scenario: Rc::clone(scenario),
            checks: 0,
        }
    }

    /// Returns how often shares were compared.
    pub(super) fn checks(&self) -> u64 {
        self.checks
    }

    pub(super) fn arrives(&mut self, request: &GateRequest) {
        let origin = &mut self.origins[request.origin];
        *origin.waiting.entry(lane(request)).or_default() += 1;
        self.update_window(request.origin, request.since);
    }

    /// Records that a request waits no longer. `passes`: it goes on to the origin.
    pub(super) fn ends(&mut self, request: &GateRequest, passes: bool, now: Duration) -> Checked {
        let (index, lane) = (request.origin, lane(request));
        let origin = &mut self.origins[index];
        if let Some(waiting) = origin.waiting.get_mut(&lane) {
            *waiting = waiting.saturating_sub(1);
        }
        origin.waiting.retain(|_, waiting| *waiting > 0);
        self.update_window(index, now);
        let rate = self.scenario.origins[index].rate.per_second();
        let window = self.origins[index].window.as_mut();
        let Some(window) = window.filter(|window| passes && now >= window.from) else {
            return Ok(());
        };
        *window.left.entry(lane).or_default() += 1;
        window.all += 1;
        self.checks += 1;
        window.check(rate)
    }

    /// Begins or ends a window.
    fn update_window(&mut self, index: usize, now: Duration) {
        let plan = &self.scenario.origins[index];
        let has_one_rate = self.scenario.origin_rates(index).count() == 1;
        let is_slow = plan.rate.per_second() < SLOWEST;
        if is_slow || !plan.is_fair || !has_one_rate || !self.scenario.is_plain(index) {
            return;
        }
        let origin = &mut self.origins[index];
        // Number of gateways at which a key of a class waits, and sum of the weights of a class's
        // keys.
        let mut gateways = BTreeMap::<(usize, usize), u32>::new();
        for (_, class, key) in origin.waiting.keys() {
            *gateways.entry((*class, *key)).or_default() += 1;
        }
        let mut classes = BTreeMap::<usize, u32>::new();
        for (class, key) in gateways.keys() {
            *classes.entry(*class).or_default() += plan.keys[*key].1;
        }
        let all: u32 = classes.keys().map(|class| plan.classes[*class].1).sum();
        let parts = origin.waiting.keys().map(|lane| {
            let (_, class, key) = lane;
            let part_of_class = f64::from(plan.classes[*class].1) / f64::from(all);
            let part_in_class = f64::from(plan.keys[*key].1) / f64::from(classes[class]);
            let sharing = f64::from(gateways[&(*class, *key)]);
            (*lane, part_of_class * part_in_class / sharing)
        });
        let parts: BTreeMap<Lane, f64> = parts.collect();
        // Each key must have enough requests until its waiters are known, and for some time after.
        let rate = plan.rate.per_second();
        let mut waiting = origin.waiting.iter();
        let all_have = waiting.all(|(lane, count)| *count as f64 > parts[lane] * rate * 0.1 + 2.0);
        if !all_have {
            origin.window = None;
        } else if !(origin.window.as_ref()).is_some_and(|window| window.parts == parts) {
            origin.window = Some(Window {
                from: now + SETTLED + 8 * self.scenario.delay.1,
                parts,
                left: BTreeMap::new(),
                all: 0,
            });
        }
    }
}

impl Window {
    /// Compares the departures with the shares: of each lane, and of each key at all gateways.
    fn check(&self, rate: f64) -> Checked {
        for (lane, part) in &self.parts {
            let left = self.left.get(lane).copied().unwrap_or(0) as f64;
            let due = part * self.all as f64;
            if (left - due).abs() > part * rate * MAX_DEVIATION + 3.0 {
                let (gateway, class, key) = lane;
                return Err(format!(
                    "{left} of key {key} in class {class} left gateway {gateway}, not {due:.1}"
                ));
            }
        }
        // Share, departures and number of gateways of each key of a class.
        let mut keys = BTreeMap::<(usize, usize), (f64, f64, f64)>::new();
        for (lane, part) in &self.parts {
            let left = self.left.get(lane).copied().unwrap_or(0) as f64;
            let sums = keys.entry((lane.1, lane.2)).or_default();
            *sums = (sums.0 + part, sums.1 + left, sums.2 + 1.0);
        }
        for ((class, key), (part, left, gateways)) in keys {
            let due = part * self.all as f64;
            if (left - due).abs() > part * rate * MAX_DEVIATION + 3.0 + gateways {
                return Err(format!(
                    "{left} of key {key} in class {class} left {gateways} gateways, not {due:.1}"
                ));
            }
        }
        Ok(())
    }
}

fn lane(request: &GateRequest) -> Lane {
    (request.gateway, request.class, request.key)
}
