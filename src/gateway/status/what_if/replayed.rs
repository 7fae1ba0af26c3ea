//! The replay itself: pure arithmetic over recorded arrivals (requests at a zone).
//!
//! `now` is the zone as it is, `then` the zone with the requested numbers.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use config::{Route, Settings, StoreKind, Zone};
use foldhash::fast::RandomState;
use limit::{Account, Excess, Limit, Moment};

use super::other_numbers::OtherNumbers;
use super::replay_all;
use crate::observe::key_names::KeyNames;
use crate::observe::metrics::LimitStatus;
use crate::replay::{Outcome, Spread, ZoneKeys};
use crate::status::plain::Plain;
use crate::zone::Arrival;
use crate::zone::report::sample::{ChangedKey, Replayed, WhatIf};

/// Maximum number of keys in the result.
const MAX_KEYS: usize = 5;
/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// Replays arrivals at the zone with this index, as it is and with other numbers.
///
/// Returns `None` if the replay is not done by `deadline`.
pub(crate) fn replay<'a>(
    arrivals: impl ExactSizeIterator<Item = Arrival<'a>>,
    settings: &Settings,
    zone: usize,
    requested: &OtherNumbers,
    deadline: Moment,
) -> Option<WhatIf> {
    let zone_now = &settings.zones[zone];
    let unchanged = OtherNumbers::default();
    let zone_then = requested.apply_to_zone(zone_now);
    let mut now = Side::new(zone_now, &unchanged);
    let mut then = Side::new(&zone_then, requested);
    let mut keys: HashMap<&[u8], KeyOutcomes, RandomState> = HashMap::default();
    let mut has_in_flight = false;
    let requests = replay_all(arrivals, deadline, |arrival| {
        has_in_flight |= arrival.limit.in_flight.is_some();
        let key = keys.entry(arrival.key).or_default();
        key.requests += 1;
        key.rejected_now += u64::from(now.rejects(&arrival));
        key.rejected_then += u64::from(then.rejects(&arrival));
    })?;
    Some(WhatIf {
        zone: Plain::new(&zone_now.name),
        arrivals: requests,
        now: now.finish(requests),
        then: then.finish(requests),
        keys: changed_keys(&keys, zone_now),
        ignores: ignored_facts(settings, zone, has_in_flight),
        ..WhatIf::default()
    })
}

/// Replay with one set of numbers.
pub(crate) struct Side<'a> {
    /// The zone, with these numbers.
    zone: &'a Zone,
    requested: &'a OtherNumbers,
    /// Charges of the keys that the zone would remember.
    keys: ZoneKeys<KeyState>,
    /// Numbers of requests by outcome.
    counts: Replayed,
    /// Waits of the delayed requests, in nanoseconds.
    waits: Spread,
    /// Departures of all requests that are not rejected, in nanoseconds.
    departures: Vec<u64>,
}

/// State of a key.
struct KeyState {
    /// Requests that the key was charged.
    account: Account,
    /// Departure of its last request. The zone does not forget the key before.
    busy_until: Moment,
}

/// Requests of a key, and its rejections with either set of numbers.
#[derive(Clone, Copy, Debug, Default)]
struct KeyOutcomes {
    requests: u64,
    rejected_now: u64,
    rejected_then: u64,
}

impl<'a> Side<'a> {
    pub(crate) fn new(zone: &'a Zone, requested: &'a OtherNumbers) -> Self {
        Self {
            zone,
            requested,
            keys: ZoneKeys::new(zone),
            counts: Replayed {
                rate: Plain::new(&zone.rate.to_string()),
                ..Replayed::default()
            },
            waits: Spread::default(),
            departures: Vec::new(),
        }
    }

    /// Decides on the next arrival. Returns whether it is delayed or rejected.
    pub(crate) fn limits(&mut self, arrival: &Arrival) -> bool {
        let passed = self.counts.passed;
        self.rejects(arrival);
        self.counts.passed == passed
    }

    /// Decides on the next arrival. Returns whether it is rejected.
    fn rejects(&mut self, arrival: &Arrival) -> bool {
        let outcome = self.decide(arrival);
        self.count(&outcome)
    }

    /// Decides on an arrival by the rules of the zone.
    fn decide(&mut self, arrival: &Arrival) -> Outcome {
        let Arrival {
            time, key, dry_run, ..
        } = *arrival;
        let limit = self.requested.apply_to_limit(self.zone, arrival.limit);
        let limit = Limit {
            in_flight: None,
            ..self.zone.limit_of(key, limit)
        };
        let algorithm = self.zone.algorithm;
        let new = || KeyState {
            account: Account::new(algorithm),
            busy_until: time,
        };
        self.keys
            .remember(key, |oldest| oldest.busy_until > time, new);
        let Some(known) = self.keys.peek_mut(key) else {
            // The zone is full of keys that are busy.
            return Outcome::rejected(dry_run, Excess::default(), time);
        };
        let rate = self.zone.rate_of(key);
        if let Some(refusal) = known.account.refuses(rate, limit, time) {
            return Outcome::rejected(dry_run, refusal.excess, time);
        }
        let verdict = known.account.decide(rate, limit, time);
        let outcome = Outcome::accepted(dry_run, &[verdict], time);
        let departure = outcome.departure.unwrap_or_default();
        known.busy_until = known.busy_until.max(departure);
        outcome
    }

    /// Counts an outcome. Returns whether the request was rejected.
    fn count(&mut self, outcome: &Outcome) -> bool {
        let counts = &mut self.counts;
        match outcome.status {
            // A replay has no disconnected clients and no other zones, and all arrivals have keys.
            LimitStatus::Passed
            | LimitStatus::Cancelled
            | LimitStatus::RejectedElsewhere
            | LimitStatus::NoKey => {
                counts.passed += 1;
            }
            LimitStatus::Delayed => counts.delayed += 1,
            LimitStatus::Rejected => counts.rejected += 1,
            LimitStatus::DelayedDryRun => counts.delayed_dry_run += 1,
            LimitStatus::RejectedDryRun => counts.rejected_dry_run += 1,
        }
        if let (LimitStatus::Delayed, Some(delay)) = (outcome.status, outcome.delay()) {
            let nanos = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
            self.waits.add(nanos);
        }
        let departure = outcome.departure.map(Moment::as_nanos);
        self.departures.extend(departure);
        matches!(
            outcome.status,
            LimitStatus::Rejected | LimitStatus::RejectedDryRun
        )
    }

    /// Computes the result of a replay of `requests` arrivals.
    pub(crate) fn finish(mut self, requests: u64) -> Replayed {
        let rejected = self.counts.rejected + self.counts.rejected_dry_run;
        let waits = (self.waits.count() > 0).then_some(&self.waits);
        let wait = |share| waits.map(|waits| seconds(waits.quantile(share)));
        Replayed {
            share_rejected: rejected as f64 / requests.max(1) as f64,
            wait_p50: wait(0.5),
            wait_p95: wait(0.95),
            wait_p99: wait(0.99),
            wait_max: waits.map(|waits| seconds(waits.peak())),
            most_in_a_second: most_in_a_second(&mut self.departures),
            ..self.counts
        }
    }
}

/// Converts nanoseconds to seconds.
fn seconds(nanos: u64) -> f64 {
    Duration::from_nanos(nanos).as_secs_f64()
}

/// Returns the maximum number of these instants, in nanoseconds, that lie within one second.
fn most_in_a_second(moments: &mut [u64]) -> u64 {
    moments.sort_unstable();
    // Index of the first instant within one second before the current one.
    let mut first = 0;
    let mut most = 0;
    for (index, moment) in moments.iter().enumerate() {
        while moment - moments[first] >= SECOND {
            first += 1;
        }
        most = most.max(index - first + 1);
    }
    most as u64
}

/// Returns the keys whose rejections change most.
fn changed_keys(keys: &HashMap<&[u8], KeyOutcomes, RandomState>, zone: &Zone) -> Vec<ChangedKey> {
    let change = |key: &KeyOutcomes| key.rejected_now.abs_diff(key.rejected_then);
    let changed = keys.iter().filter(|(_, outcomes)| change(outcomes) > 0);
    let mut changed: Vec<_> = changed.collect();
    changed.sort_unstable_by_key(|(key, outcomes)| (Reverse(change(outcomes)), **key));
    let to_sample = |(key, outcomes): (&&[u8], &KeyOutcomes)| ChangedKey {
        key: Plain::new(&KeyNames::of(zone).full(key)),
        plan: zone.plans.name_of(key).map(Plain::new),
        requests: outcomes.requests,
        rejected_now: outcomes.rejected_now,
        rejected_then: outcomes.rejected_then,
    };
    changed.into_iter().take(MAX_KEYS).map(to_sample).collect()
}

/// Names the facts that the replay ignores, as far as they apply to the zone.
fn ignored_facts(settings: &Settings, zone: usize, has_in_flight: bool) -> Vec<Plain> {
    let mut ignored = vec![
        "what keys were charged before the span".to_owned(),
        "turns that were given back, as by clients that left: more is rejected here".to_owned(),
    ];
    if has_in_flight {
        ignored.push("in_flight, because it is not recorded how long requests run".to_owned());
    }
    if settings.zones[zone].new_keys.is_some() {
        ignored.push("new_keys: each key has a bucket of its own".to_owned());
    }
    if settings.zones[zone].store == StoreKind::Redis {
        ignored.push("requests at other gateways that share the zone".to_owned());
    }
    let is_limited = |route: &&Route| route.limits.iter().any(|limit| limit.zone == zone);
    let routes = || settings.routes.iter().filter(is_limited);
    if routes().any(Route::charge_depends_on_response) {
        ignored.push("costs and refunds that an answer decides on".to_owned());
    }
    let origins: HashSet<usize> = routes().filter_map(Route::origin).collect();
    let gates = settings.origins.iter().enumerate();
    let gates =
        gates.filter(|(index, origin)| origins.contains(index) && origin.gate_limits().is_some());
    for (_, origin) in gates {
        ignored.push(format!("the gate of origin {}", origin.name));
    }
    ignored.iter().map(|text| Plain::new(text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use limit::{Cost, Delay};

    use crate::time::clock;

    const START: Moment = Moment::from_nanos(1_700_000_000_000_000_000);

    fn settings(zone: &str, limit: &str) -> Settings {
        let zones = format!(
            "[zones.other]\nkey = \"$host\"\nrate = \"1r/s\"\n\
             [zones.z]\nkey = \"$remote_addr\"\n{zone}"
        );
        let limits = format!("limits = [{{ zone = \"z\", {limit} }}]");
        crate::test_settings::with_fields(&zones, "rate = \"9r/s\"", &limits)
    }

    fn arrival(millis: u64, key: &str, burst: u32, dry_run: bool) -> Arrival<'_> {
        let limit = Limit {
            burst,
            ..Limit::unlimited(Delay::Above(0), Cost::ONE)
        };
        Arrival {
            time: START + Duration::from_millis(millis),
            key: key.as_bytes(),
            limit,
            dry_run,
        }
    }

    fn result_of(settings: &Settings, arrivals: &[Arrival], body: &str) -> WhatIf {
        let requested = OtherNumbers::read(body.as_bytes(), &settings.zones[1]).unwrap();
        let never = Moment::from_nanos(u64::MAX);
        replay(arrivals.iter().copied(), settings, 1, &requested, never).unwrap()
    }

    #[test]
    fn both_sets_of_numbers_are_replayed_with_the_same_arrivals() {
        let settings = settings("rate = \"2r/s\"", "burst = 3");
        let arrivals: Vec<_> = (0..10).map(|n| arrival(n, "a", 3, false)).collect();
        let result = result_of(&settings, &arrivals, r#"{"rate": "4r/s", "burst": 5}"#);
        assert_eq!(result.arrivals, 10);
        let (now, then) = (&result.now, &result.then);
        assert_eq!((now.passed, now.delayed, now.rejected), (1, 3, 6));
        assert_eq!((then.passed, then.delayed, then.rejected), (1, 5, 4));
        assert_eq!((now.rate.as_str(), then.rate.as_str()), ("2r/s", "4r/s"));
        assert!((now.share_rejected - 0.6).abs() < 1e-9);
        // Departures at 0, 0.5, 1 and 1.5 s, and at 0, 0.25, ... 1.25 s.
        assert!((now.wait_max.unwrap() - 1.5).abs() < 0.01, "{now:?}");
        assert!((then.wait_p50.unwrap() - 0.75).abs() < 0.01, "{then:?}");
        assert_eq!((now.most_in_a_second, then.most_in_a_second), (2, 4));
        let changed = ChangedKey {
            key: "a".into(),
            plan: None,
            requests: 10,
            rejected_now: 6,
            rejected_then: 4,
        };
        assert_eq!(result.keys, [changed]);
        let ignores: Vec<_> = result.ignores.iter().map(Plain::as_str).collect();
        assert_eq!(ignores[2..], ["the gate of origin app"]);
    }

    #[test]
    fn a_plan_keeps_its_own_numbers_and_a_dry_run_lets_everybody_through() {
        let zone =
            "rate = \"1r/s\"\n[zones.z.plans.gold]\nkeys = [\"gold\"]\nrate = \"1r/m\"\nburst = 1";
        let settings = settings(zone, "burst = 0");
        let mut arrivals = vec![arrival(0, "tried", 0, true), arrival(1, "tried", 0, true)];
        arrivals.extend((2..6).map(|n| arrival(n, "gold", 1, false)));
        arrivals.extend((6..9).map(|n| arrival(n, "bronze", 0, false)));
        let result = result_of(&settings, &arrivals, r#"{"rate": "1000r/s", "burst": 9}"#);
        assert_eq!(
            (result.now.rejected, result.now.rejected_dry_run),
            (2 + 2, 1)
        );
        assert_eq!(result.now.most_in_a_second, 2 + 1 + 1, "{result:?}");
        let names: Vec<_> = result.keys.iter().map(|key| key.key.as_str()).collect();
        assert_eq!(names, ["bronze", "tried"], "gold has numbers of its own");
        assert_eq!((result.then.rejected, result.then.rejected_dry_run), (2, 0));
    }

    #[test]
    fn the_five_keys_with_the_largest_change_are_listed() {
        let settings = settings("rate = \"1r/m\"", "burst = 0");
        let keys: Vec<String> = (0..9).map(|n| format!("k{n}")).collect();
        // Key `n` sends `n + 1` requests, of which one passes.
        let arrivals = keys.iter().zip(0..).flat_map(|(key, n)| {
            let sent_at = (0..=n).map(move |nth| n * 10 + nth);
            sent_at.map(move |millis| arrival(millis, key, 0, false))
        });
        let arrivals: Vec<_> = arrivals.collect();
        let result = result_of(&settings, &arrivals, r#"{"burst": 99}"#);
        let names: Vec<_> = result.keys.iter().map(|key| key.key.as_str()).collect();
        assert_eq!(names, ["k8", "k7", "k6", "k5", "k4"]);
        let first = &result.keys[0];
        assert_eq!((first.rejected_now, first.rejected_then), (8, 0));
    }

    #[test]
    fn a_replay_ends_at_its_deadline() {
        let settings = settings("rate = \"1r/m\"", "burst = 0");
        let requested = OtherNumbers::read(br#"{"burst": 1}"#, &settings.zones[1]).unwrap();
        let arrivals = [arrival(0, "a", 0, false)];
        let past = clock::now();
        let found = replay(arrivals.into_iter(), &settings, 1, &requested, past);
        assert_eq!(found, None);
    }

    #[test]
    fn the_maximum_in_a_second_counts_departures_in_that_second() {
        let s = SECOND;
        // Instants, and the maximum number of them in one second.
        for (mut moments, most) in [
            (vec![], 0),
            (vec![5], 1),
            (vec![s, 0], 1),
            (vec![s - 1, 0], 2),
            (vec![0, s / 2, s, s + 1, 3 * s], 3),
        ] {
            assert_eq!(most_in_a_second(&mut moments), most, "{moments:?}");
        }
    }
}
