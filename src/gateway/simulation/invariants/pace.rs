//! Invariant: the limit holds over all gateways.
//!
//! A zone limits the rate of each key, by the store or, while a gateway is *alone*, by the gateway.
//! A window is any span of time: the limit bounds the departures in it. A method with the name of
//! an event, such as `departed`, records the event.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use limit::{Algorithm, Cost, Delay, Rate};

use super::{Checked, Request, is_alone};
use crate::simulation::scenario::Scenario;
use crate::simulation::script_call::ScriptCall;
use crate::zone::Charge;

/// Invariant: the limit holds over all gateways in every window.
///
/// In addition, departures keep their distance. Decisions of the store are bounded for all gateways
/// together, and decisions of a gateway that is alone for each gateway.
pub(super) struct Pace {
    scenario: Rc<Scenario>,
    /// Departures in their order, by stream.
    departures: BTreeMap<Stream, Vec<Departure>>,
    /// Tokens that the store took back, with their times, by zone and key.
    tokens_back: BTreeMap<(usize, &'static str), Vec<(Duration, u32)>>,
    /// Times at which the store lost data.
    forgot: Vec<Duration>,
    /// Periods in which gateways were alone: gateway, begin and end. The end may be in the future.
    alone: Vec<(usize, Duration, Duration)>,
    /// Sum of forward jumps of the store's clock.
    jumped: Duration,
}

/// Index of a zone, and a key; and the gateway, if it decided without the store.
type Stream = (usize, &'static str, Option<usize>);

/// Departure of a request.
struct Departure {
    /// Number of the request.
    id: u64,
    at: Duration,
    cost: u32,
    /// Time and amount of a refund of its cost.
    given_back: Option<(Duration, u32)>,
}

impl Pace {
    pub(super) fn new(scenario: &Rc<Scenario>) -> Self {
        Self {
            scenario: Rc::clone(scenario),
            departures: BTreeMap::new(),
            tokens_back: BTreeMap::new(),
            forgot: Vec::new(),
            alone: Vec::new(),
            jumped: Duration::ZERO,
        }
    }

    pub(super) fn store_ran(&mut self, call: &ScriptCall, now: Duration) {
        let done = call.entries.iter().filter(|entry| entry.done > 0);
        for entry in done.filter(|_| call.is_refund()) {
            let Some((index, name)) = entry.zone_and_key() else {
                continue;
            };
            let zone = &self.scenario.zones[index];
            if let Some(key) = zone.keys.iter().find(|key| **key == name)
                && zone.algorithm == Algorithm::TokenBucket
            {
                let back = self.tokens_back.entry((index, key)).or_default();
                back.push((now, entry.cost));
            }
        }
    }

    pub(super) fn store_forgot(&mut self, now: Duration) {
        self.forgot.push(now);
    }

    pub(super) fn goes_alone(&mut self, gateway: usize, now: Duration) {
        self.alone.push((gateway, now, Duration::MAX));
    }

    pub(super) fn is_back(&mut self, gateway: usize, now: Duration) {
        let periods = self.alone.iter_mut();
        let own = periods.filter(|(other, ..)| *other == gateway);
        own.for_each(|(.., end)| *end = (*end).min(now));
    }

    pub(super) fn jumped(&mut self, ahead: Duration) {
        self.jumped += ahead;
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
            given_back: None,
        });
        self.check_windows(stream)?;
        self.check_distance(stream)
    }

    pub(super) fn settled(&mut self, request: &Request, cost: Option<Cost>, now: Duration) {
        let kept = cost.map_or(0, Cost::get);
        let departures = self.departures.values_mut().flatten();
        for departure in departures.filter(|departure| departure.id == request.id) {
            let less = departure.cost.saturating_sub(kept);
            departure.given_back = Some((now, less));
        }
    }

    /// Checks all windows that end now.
    fn check_windows(&self, stream: Stream) -> Checked {
        let departures = &self.departures[&stream];
        let Some(last) = departures.last() else {
            return Ok(());
        };
        let (mut sum, given_back) = (0, self.given_back(stream));
        for (index, first) in departures.iter().enumerate().rev() {
            sum += first.cost;
            // Only the widest window with these departures matters.
            let before = index.checked_sub(1).map(|index| departures[index].at);
            if before == Some(first.at) {
                continue;
            }
            // Tokens refunded before the window cannot be used in it.
            let since = first.at.saturating_sub(self.refund_delay());
            let within = given_back.iter().filter(|(time, _)| *time >= since);
            let more: u32 = within.map(|(_, cost)| cost).sum();
            let most = self.max_departures(stream, first.at, last.at) + f64::from(more);
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

    /// Returns the refunds of a stream, with their times.
    ///
    /// A refunded token admits one more request, even if the bucket has refilled since the token
    /// was taken: it has no slots, so the store cannot know that. The request that refunds it need
    /// not have departed: its client may have left before the reply. So a window has at most
    /// `burst + 1` tokens, the tokens added in it, and the refunded ones.
    fn given_back(&self, stream: Stream) -> Vec<(Duration, u32)> {
        let (index, key, gateway) = stream;
        let is_token_bucket = self.scenario.zones[index].algorithm == Algorithm::TokenBucket;
        if is_token_bucket && gateway.is_none() {
            return self
                .tokens_back
                .get(&(index, key))
                .cloned()
                .unwrap_or_default();
        }
        let departures = self.departures[&stream].iter();
        departures
            .filter_map(|departure| departure.given_back)
            .collect()
    }

    /// Returns the maximum time until a refund reaches the store.
    fn refund_delay(&self) -> Duration {
        if self.scenario.is_calm() {
            8 * self.scenario.delay.1
        } else {
            Duration::from_secs(3)
        }
    }

    /// Returns the maximum number of departures between two times.
    fn max_departures(&self, stream: Stream, from: Duration, to: Duration) -> f64 {
        let (index, key, gateway) = stream;
        let zone = &self.scenario.zones[index];
        let span = (to.saturating_sub(from) + self.clock_error() + self.jumped).as_secs_f64();
        let rate = self.scenario.fastest(index, key);
        let (cost, burst) = (f64::from(zone.max_cost()), f64::from(zone.max_burst()));
        // After each loss of data and each time alone, a new schedule begins.
        let waits = self.scenario.longest_wait(index, key, 0) + self.scenario.timeout;
        let touches = |began: Duration, ended: Duration| {
            began <= to + self.scenario.timeout && ended.saturating_add(waits) >= from
        };
        // Waiters at other gateways learn of a new rate with the next request there.
        let schedules = 1 + self.scenario.retunes(index);
        let times = match gateway {
            None => schedules + self.forgot.iter().filter(|at| touches(**at, **at)).count(),
            Some(gateway) => {
                let own = self.alone.iter().filter(|(other, ..)| *other == gateway);
                own.filter(|(_, began, ended)| touches(*began, *ended))
                    .count()
                    .max(1)
            }
        };
        let mut times = times as f64;
        if zone.has_mixed_costs() && !self.scenario.is_calm() {
            // The first waiter gets the first slot, even if it costs less.
            times *= cost;
        }
        let alone = if zone.algorithm.has_windows() {
            self.max_of_one_schedule(stream, span)
        } else {
            rate.per_second() * span + burst + cost
        };
        let most = if gateway.is_some() {
            alone * times
        } else {
            self.max_of_one_schedule(stream, span) * times
        };
        most + 1e-6
    }

    /// Returns the maximum number of departures within a span in seconds, by a single schedule.
    fn max_of_one_schedule(&self, (index, key, _): Stream, span: f64) -> f64 {
        let zone = &self.scenario.zones[index];
        let by_rate = self.scenario.fastest(index, key).per_second() * span;
        let (cost, burst) = (f64::from(zone.max_cost()), f64::from(zone.max_burst()));
        match zone.algorithm {
            // A gateway that learns late of a higher rate releases waiters whose slots have passed.
            Algorithm::LeakyBucket if self.scenario.retunes(index) > 0 => {
                by_rate + burst + 2.0 * cost
            }
            Algorithm::LeakyBucket => {
                // Waiters depart at the rate; with mixed costs in another order.
                let delay = zone.limits.iter().map(|limit| match limit.delay {
                    Delay::Above(delay) => delay,
                    Delay::Never => limit.burst,
                });
                let delay = f64::from(delay.max().unwrap_or(0));
                let ahead = if cost > 1.0 { 2.0 * cost } else { 1.0 };
                by_rate + delay + ahead
            }
            Algorithm::TokenBucket => by_rate + burst + 1.0,
            _ => {
                let rates = || self.scenario.rates(index, key);
                let period = rates().map(Rate::period).min().unwrap_or_default();
                let count = rates().filter_map(Rate::whole_count).max();
                let windows = span / period.as_secs_f64();
                let touched = match zone.algorithm {
                    Algorithm::SlidingWindowLog => windows.floor() + 1.0,
                    _ => windows.floor() + 2.0,
                };
                f64::from(count.unwrap_or(0)) * touched
            }
        }
    }

    /// Returns by how much the distance of two departures may fall short, due to clock errors.
    fn clock_error(&self) -> Duration {
        let (least, most) = self.scenario.delay;
        let spread = if self.scenario.is_calm() {
            most.saturating_sub(least)
        } else {
            // Before or after its time.
            2 * (self.scenario.timeout + Duration::from_millis(2))
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

    /// Checks that requests of one lane depart an interval apart.
    fn check_distance(&self, stream: Stream) -> Checked {
        let (index, key, gateway) = stream;
        let zone = &self.scenario.zones[index];
        let is_spaced = zone.algorithm.queues()
            && zone
                .limits
                .iter()
                .all(|limit| limit.delay == Delay::Above(0));
        let departures = &self.departures[&stream];
        let [.., one, other] = departures.as_slice() else {
            return Ok(());
        };
        let has_jumped = self.jumped > Duration::ZERO;
        let is_disturbed = gateway.is_some() || !self.forgot.is_empty() || has_jumped;
        let is_disturbed = is_disturbed || self.scenario.retunes(index) > 0;
        if !is_spaced || is_disturbed || one.given_back.is_some() {
            return Ok(());
        }
        let rate: Rate = self.scenario.fastest(index, key);
        let gap = other.at.saturating_sub(one.at);
        if gap + self.clock_error() < rate.interval() {
            return Err(format!("requests of {key} depart {gap:?} apart, at {rate}"));
        }
        Ok(())
    }
}
