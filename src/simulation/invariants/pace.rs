use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use super::{Checked, Request, is_alone};
use crate::actors::Charge;
use crate::limit::{Algorithm, Cost, Delay, Rate};
use crate::simulation::scenario::Scenario;

/// The limit holds over all gateways, in every window of time, and departures keep their distance.
///
/// What the store decided is bounded for all gateways together, what a gateway decided alone for
/// each of them.
pub(super) struct Pace {
    scenario: Rc<Scenario>,
    departures: BTreeMap<Stream, Vec<Departure>>,
    /// When the store has lost data.
    forgot: Vec<Duration>,
    /// When a gateway began to go alone.
    alone: Vec<(usize, Duration)>,
}

/// A zone and a key, and the gateway if that went alone.
type Stream = (usize, &'static str, Option<usize>);

struct Departure {
    id: u64,
    at: Duration,
    /// Less if it is given back.
    cost: u32,
}

impl Pace {
    pub(super) fn new(scenario: &Rc<Scenario>) -> Self {
        Self {
            scenario: Rc::clone(scenario),
            departures: BTreeMap::new(),
            forgot: Vec::new(),
            alone: Vec::new(),
        }
    }

    pub(super) fn store_forgot(&mut self, now: Duration) {
        self.forgot.push(now);
    }

    pub(super) fn goes_alone(&mut self, gateway: usize, now: Duration) {
        self.alone.push((gateway, now));
    }

    pub(super) fn departed(&mut self, request: &Request, charge: Charge, now: Duration) -> Checked {
        if charge == Charge::Nothing {
            return Ok(());
        }
        let gateway = is_alone(charge).then_some(request.gateway);
        let stream = (request.zone, request.key, gateway);
        self.departures.entry(stream).or_default().push(Departure {
            id: request.id,
            at: now,
            cost: request.limit.cost.get(),
        });
        self.check_windows(stream)?;
        self.check_distance(stream)
    }

    pub(super) fn settled(&mut self, request: &Request, cost: Option<Cost>) {
        let cost = cost.map_or(0, Cost::get);
        let all = self.departures.values_mut().flatten();
        for departure in all.filter(|it| it.id == request.id) {
            departure.cost = departure.cost.min(cost);
        }
    }

    /// Checks all windows that end now.
    fn check_windows(&self, stream: Stream) -> Checked {
        let departures = &self.departures[&stream];
        let Some(last) = departures.last() else {
            return Ok(());
        };
        let mut sum = 0;
        for (index, first) in departures.iter().enumerate().rev() {
            sum += first.cost;
            // Only the widest window that has these.
            let before = index.checked_sub(1).map(|index| departures[index].at);
            if before == Some(first.at) {
                continue;
            }
            let most = self.most(stream, first.at, last.at);
            if f64::from(sum) > most {
                let (_, key, _) = stream;
                let span = last.at.saturating_sub(first.at);
                return Err(format!(
                    "{sum} of {key} departed in {span:?}, more than {most:.3}"
                ));
            }
        }
        Ok(())
    }

    /// How many requests may depart from one time to another.
    fn most(&self, stream: Stream, from: Duration, to: Duration) -> f64 {
        let (index, key, gateway) = stream;
        let zone = &self.scenario.zones[index];
        let span = (to.saturating_sub(from) + self.error()).as_secs_f64();
        let rate = self.scenario.fastest(index, key);
        let costs = zone.limits.iter().map(|limit| limit.cost.get());
        let cost = f64::from(costs.max().unwrap_or(1));
        let bursts = zone.limits.iter().map(|limit| limit.burst);
        let burst = f64::from(bursts.max().unwrap_or(0));
        let once = match zone.algorithm {
            Algorithm::LeakyBucket => {
                // Those who wait depart at the rate; where costs are mixed, in another order.
                let delay = zone.limits.iter().map(|limit| match limit.waits() {
                    Delay::Above(delay) => delay,
                    Delay::Never => limit.burst,
                });
                let delay = f64::from(delay.max().unwrap_or(0));
                let ahead = if cost > 1.0 { 2.0 * cost } else { 1.0 };
                rate.per_second() * span + delay + ahead
            }
            Algorithm::TokenBucket => rate.per_second() * span + burst + 1.0,
            _ => {
                let windows = span / rate.period().as_secs_f64();
                let touched = match zone.algorithm {
                    Algorithm::SlidingWindowLog => windows.floor() + 1.0,
                    _ => windows.floor() + 2.0,
                };
                (burst + 1.0) * touched
            }
        };
        // What the store forgot is forgiven once, and what a gateway let in alone each time.
        let times = match gateway {
            None => {
                1 + self
                    .forgot
                    .iter()
                    .filter(|time| self.touches(**time, from, to))
                    .count()
            }
            Some(gateway) => {
                let own = self.alone.iter().filter(|(other, _)| *other == gateway);
                own.filter(|(_, time)| self.touches(*time, from, to))
                    .count()
                    .max(1)
            }
        };
        #[allow(clippy::cast_precision_loss)]
        let times = times as f64;
        let most = if gateway.is_some() {
            rate.per_second() * span + (burst + cost) * times
        } else {
            once * times
        };
        most + 1e-6
    }

    /// Whether what was decided around a time may depart in a window.
    fn touches(&self, time: Duration, from: Duration, to: Duration) -> bool {
        let _ = from;
        time <= to + self.scenario.timeout
    }

    /// How much nearer than on the schedule two departures may be: what the clocks are wrong by.
    fn error(&self) -> Duration {
        let (least, most) = self.scenario.delay;
        let spread = if self.scenario.is_calm() {
            most.saturating_sub(least)
        } else {
            self.scenario.timeout + Duration::from_millis(2)
        };
        // A sample counts for up to twenty seconds.
        let drift = self
            .scenario
            .clocks
            .iter()
            .map(|skew| skew.ppm.unsigned_abs())
            .max();
        let drift = Duration::from_micros(20 * u64::from(drift.unwrap_or(0)));
        spread + 2 * drift + Duration::from_micros(2)
    }

    /// Where all wait in one lane, one departs an interval behind the other.
    fn check_distance(&self, stream: Stream) -> Checked {
        let (index, key, gateway) = stream;
        let zone = &self.scenario.zones[index];
        let is_spaced = zone.algorithm.queues()
            && zone
                .limits
                .iter()
                .all(|limit| limit.waits() == Delay::Above(0));
        let departures = &self.departures[&stream];
        let [.., one, other] = departures.as_slice() else {
            return Ok(());
        };
        let is_disturbed = gateway.is_some() || !self.forgot.is_empty();
        if !is_spaced || is_disturbed || one.cost == 0 {
            return Ok(());
        }
        let rate: Rate = self.scenario.fastest(index, key);
        let gap = other.at.saturating_sub(one.at);
        if gap + self.error() < rate.interval() {
            return Err(format!("requests of {key} depart {gap:?} apart, at {rate}"));
        }
        Ok(())
    }
}
