//! Finds the faster rate that would help a zone that rejects requests or delays them for long.
//!
//! The last requests of the zone (arrivals) are decided again at each rate. A limited key is one
//! whose requests are delayed or rejected at the rate in force.

use std::collections::HashMap;
use std::time::Duration;

use config::Settings;
use foldhash::fast::RandomState;
use limit::{Moment, Rate};

use super::other_numbers::OtherNumbers;
use super::replay_all;
use super::replayed::Side;
use crate::zone::report::sample::{RateAdvice, Replayed};
use crate::zone::{Arrival, Arrivals};

/// Tried rates, as multiples of the one in force.
const FACTORS: [f64; 8] = [1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0];
/// Maximum p99 of the waits, in seconds, at a rate that is fast enough.
///
/// A rate that is fast enough also rejects no request.
const MAX_SHORT_WAIT: f64 = 1.0;

/// Minimum time since a key's first request before its request rate is known.
const KNOWN_AFTER: Duration = Duration::from_secs(5);
/// Minimum share of the limited keys' requests whose key sends no faster than a tried rate.
const NEARLY_ALL: f64 = 0.95;

/// Requests of a key.
#[derive(Clone, Copy)]
struct KeyDemand {
    /// Whether any request was delayed or rejected.
    is_limited: bool,
    /// Instant of the first request.
    first: Moment,
    /// Total cost after the first request.
    charge: u64,
    requests: u64,
}

/// Replays the arrivals of a zone, at its rate and at faster ones until one is fast enough.
///
/// A rate below the request rate of the limited keys is not tried. A full queue takes in the
/// excess, so for a while such a rate seems sufficient. While the request rate is not known, no
/// rate is tried.
///
/// Rates that are not replayed by `deadline` are left out. `None` if no rate was replayed, or if
/// the zone has no rate.
pub(crate) fn advise(
    arrivals: &Arrivals,
    settings: &Settings,
    zone: usize,
    deadline: Moment,
) -> Option<RateAdvice> {
    let span = (arrivals.since(), arrivals.until());
    advise_on(&|| arrivals.in_order(), settings, zone, span, deadline)
}

/// As [`advise`]. `arrivals`: returns all arrivals, once for each replay.
fn advise_on<'a, I: ExactSizeIterator<Item = Arrival<'a>>>(
    arrivals: &impl Fn() -> I,
    settings: &Settings,
    zone: usize,
    (since, until): (Moment, Moment),
    deadline: Moment,
) -> Option<RateAdvice> {
    let zone = settings.zones.get(zone)?;
    let rates = faster_rates(zone.rate);
    if rates.is_empty() {
        return None;
    }
    let replay = |rate: Rate| {
        let requested = OtherNumbers::of_rate(rate);
        let zone = requested.apply_to_zone(zone);
        let mut side = Side::new(&zone, &requested);
        let mut keys: HashMap<&[u8], KeyDemand, RandomState> = HashMap::default();
        let requests = replay_all(arrivals(), deadline, |arrival| {
            let is_limited = side.limits(&arrival);
            let cost = u64::from(arrival.limit.cost.get());
            keys.entry(arrival.key)
                .and_modify(|key| {
                    key.is_limited |= is_limited;
                    key.charge += cost;
                    key.requests += 1;
                })
                .or_insert(KeyDemand {
                    is_limited,
                    first: arrival.time,
                    charge: 0,
                    requests: 1,
                });
        })?;
        Some((side.finish(requests), keys))
    };
    let (now, keys) = replay(zone.rate)?;
    let limited = keys.iter().filter(|(_, key)| key.is_limited);
    let limited_keys = limited.clone().count() as u64;
    // A key with a plan (a list of keys) has the rate of the plan.
    let without_plan = limited.filter(|(key, _)| zone.plans.index_of(key).is_none());
    let without_plan: Vec<_> = without_plan.map(|(_, demand)| *demand).collect();
    let span = until.since(since);
    let demand = requested_rate(without_plan, span, until);
    let mut faster = Vec::new();
    for rate in demand.map_or(Vec::new(), |least| rates_from(least, zone.rate, rates)) {
        let Some((replayed, ..)) = replay(rate) else {
            break;
        };
        let is_enough = replayed.is_enough();
        faster.push(replayed);
        if is_enough {
            break;
        }
    }
    Some(RateAdvice {
        span: span.as_secs_f64(),
        keys: keys.len() as u64,
        limited_keys,
        now,
        faster,
    })
}

/// Returns the rate, in requests a second, at which all but a few of these keys send at most.
///
/// `None`: most requests are of keys that have not sent for long enough to know.
fn requested_rate(mut keys: Vec<KeyDemand>, span: Duration, until: Moment) -> Option<f64> {
    // A busy zone keeps its arrivals for fewer seconds: then most of them is enough.
    let known_after = KNOWN_AFTER.min(span * 4 / 5);
    let count_requests = |keys: &[KeyDemand]| keys.iter().map(|key| key.requests).sum::<u64>();
    let all = count_requests(&keys);
    keys.retain(|key| until.since(key.first) >= known_after);
    let known = count_requests(&keys);
    if known * 2 < all {
        return None;
    }
    let rate = |key: &KeyDemand| key.charge as f64 / until.since(key.first).as_secs_f64().max(1.0);
    keys.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
    // The slowest keys that together sent nearly all requests: the last of them has the rate.
    let mut summed = 0;
    let enough = known as f64 * NEARLY_ALL;
    let last = keys.iter().find(|key| {
        summed += key.requests;
        summed as f64 >= enough
    });
    Some(last.map_or(0.0, rate))
}

/// Returns the rates to try: `least`, if it is above the rate `now` in force, and all above it.
fn rates_from(least: f64, now: Rate, rates: Vec<Rate>) -> Vec<Rate> {
    let first = round(least).filter(|first| first.per_second() > now.per_second());
    let bound = first.map_or(0.0, Rate::per_second);
    let others = rates.into_iter().filter(|rate| rate.per_second() > bound);
    first.into_iter().chain(others).collect()
}

impl Replayed {
    /// Returns whether no request is rejected and no wait is long.
    fn is_enough(&self) -> bool {
        self.share_rejected <= 0.0 && self.wait_p99.is_none_or(|wait| wait <= MAX_SHORT_WAIT)
    }
}

/// Returns round rates above `rate`, the slowest first.
fn faster_rates(rate: Rate) -> Vec<Rate> {
    if rate.is_unlimited() {
        return Vec::new();
    }
    let mut rates: Vec<Rate> = Vec::new();
    for factor in FACTORS {
        if let Some(faster) = round(rate.per_second() * factor)
            && faster.per_second() > rates.last().unwrap_or(&rate).per_second()
        {
            rates.push(faster);
        }
    }
    rates
}

/// Returns the next round rate that is at least `a_second` requests a second.
///
/// `None` above the fastest rate that can be configured.
fn round(a_second: f64) -> Option<Rate> {
    let text = if a_second >= 100.0 {
        format!("{:.0}r/s", (a_second / 10.0).ceil() * 10.0)
    } else if a_second >= 1.0 {
        format!("{:.0}r/s", a_second.ceil())
    } else {
        format!("{:.0}r/m", (a_second * 60.0).ceil())
    };
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::clock;
    use limit::{Cost, Delay, Limit};

    const NEVER: Moment = Moment::from_nanos(u64::MAX);
    const KEYS: [&str; 30] = [
        "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r",
        "s", "t", "u", "v", "w", "x", "y", "z", "0", "1", "2", "3",
    ];

    fn settings(rate: &str) -> Settings {
        let zone = format!("[zones.z]\nkey = \"$remote_addr\"\nrate = \"{rate}\"");
        crate::test_settings::with_fields(&zone, "", "limits = [{ zone = \"z\", burst = 5 }]")
    }

    const START: Moment = Moment::from_nanos(1_700_000_000_000_000_000);

    /// Each of 30 clients sends a request every 400 ms, for a minute.
    fn arrivals() -> Vec<Arrival<'static>> {
        arrivals_of(Duration::from_millis(400), Duration::from_secs(60), 5)
    }

    /// Each of 30 clients sends a request in each interval.
    fn arrivals_of(every: Duration, span: Duration, burst: u32) -> Vec<Arrival<'static>> {
        let limit = Limit {
            burst,
            ..Limit::unlimited(Delay::Above(0), Cost::ONE)
        };
        let intervals = u32::try_from(span.as_nanos() / every.as_nanos()).unwrap();
        let in_interval = |nth: u32| {
            KEYS.iter().map(move |key| Arrival {
                time: START + every * nth,
                key: key.as_bytes(),
                limit,
                dry_run: false,
            })
        };
        (0..intervals).flat_map(in_interval).collect()
    }

    fn advice_on(
        arrivals: &[Arrival<'static>],
        rate: &str,
        span: Duration,
        deadline: Moment,
    ) -> Option<RateAdvice> {
        let arrivals = || arrivals.iter().copied();
        // The zone has existed for longer than its clients.
        let span = (START.before(Duration::from_secs(10)), START + span);
        advise_on(&arrivals, &settings(rate), 0, span, deadline)
    }

    fn advice(rate: &str, deadline: Moment) -> Option<RateAdvice> {
        advice_on(&arrivals(), rate, Duration::from_secs(60), deadline)
    }

    /// Returns the rates that were tried.
    fn tried(advice: &RateAdvice) -> Vec<&str> {
        advice.faster.iter().map(|it| it.rate.as_str()).collect()
    }

    #[test]
    fn faster_rates_are_tried_until_one_rejects_nobody() {
        let advice = advice("1r/s", NEVER).unwrap();
        assert_eq!((advice.keys, advice.limited_keys), (30, 30));
        let rejected = advice.now.share_rejected;
        assert!((0.5..0.6).contains(&rejected), "{advice:?}");
        // Each client sends 2.5 requests a second.
        assert_eq!(tried(&advice), ["3r/s"]);
        assert!(advice.faster[0].is_enough(), "{advice:?}");
    }

    #[test]
    fn no_rate_is_tried_below_the_one_at_which_limited_keys_send() {
        for seconds in [1, 3, 5, 8, 14, 20, 26] {
            let span = Duration::from_secs(seconds);
            let arrivals = arrivals_of(Duration::from_millis(250), span, 20);
            let advice = advice_on(&arrivals, "1r/s", span, NEVER).unwrap();
            let expected: &[_] = if seconds < 5 { &[] } else { &["4r/s"] };
            assert_eq!(tried(&advice), expected, "after {seconds} s");
        }
    }

    #[test]
    fn a_key_that_sends_far_more_does_not_decide_for_all() {
        let key = |requests, seconds| KeyDemand {
            is_limited: true,
            first: START.before(Duration::from_secs(seconds)),
            charge: requests - 1,
            requests,
        };
        let span = Duration::from_secs(60);
        let mut keys = vec![key(41, 10); 50];
        keys.push(key(81, 10));
        assert_eq!(requested_rate(keys.clone(), span, START), Some(4.0));
        // Most keys have only just come.
        keys.extend(vec![key(41, 2); 60]);
        assert_eq!(requested_rate(keys, span, START), None);
        assert_eq!(requested_rate(Vec::new(), span, START), Some(0.0));
    }

    #[test]
    fn the_time_of_the_replays_is_bounded() {
        assert_eq!(advice("1r/s", clock::now()), None);
    }

    #[test]
    fn the_rates_that_are_tried_are_round_and_rise() {
        let tried_rates = |rate: &str| {
            let rates = faster_rates(rate.parse().unwrap());
            let texts: Vec<_> = rates.iter().map(ToString::to_string).collect();
            texts.join(" ")
        };
        assert_eq!(tried_rates("1r/s"), "2r/s 3r/s 5r/s 10r/s 20r/s 50r/s");
        assert_eq!(tried_rates("1r/m"), "2r/m 3r/m 5r/m 10r/m 20r/m 50r/m");
        let expected = "130r/s 150r/s 200r/s 300r/s 490r/s 970r/s 1940r/s 4850r/s";
        assert_eq!(tried_rates("97r/s"), expected);
        assert_eq!(tried_rates("1000000r/s"), "");
    }
}
