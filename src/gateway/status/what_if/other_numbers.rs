//! Other numbers for a replay of a zone (`what_if`), as an operator requests them.

use std::time::Duration;

use config::Zone;
use limit::{Delay, Limit, Rate, parse_duration};
use serde::Deserialize;

/// Other numbers for a zone and for all limits in it. `None`: unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OtherNumbers {
    rate: Option<Rate>,
    /// Burst as in a [`Limit`]. Without a queue it is one less than the number in the file.
    burst: Option<u32>,
    delay: Option<Delay>,
    /// Maximum wait of a request; `Some(None)`: unbounded.
    max_wait: Option<Option<Duration>>,
}

/// Body of a request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct Body {
    rate: Option<String>,
    burst: Option<u32>,
    delay: Option<u32>,
    nodelay: Option<bool>,
    max_wait: Option<String>,
}

/// Example of a valid body, for errors.
const EXAMPLE: &str = r#"{"rate": "20r/s"}"#;

impl OtherNumbers {
    /// Changes the rate only.
    pub(crate) fn of_rate(rate: Rate) -> Self {
        Self {
            rate: Some(rate),
            ..Self::default()
        }
    }

    /// Parses the body of a request.
    ///
    /// # Errors
    ///
    /// A text that names the error and the valid fields.
    pub(crate) fn read(body: &[u8], zone: &Zone) -> Result<Self, String> {
        let body: Body = serde_json::from_slice(body).map_err(|error| {
            format!("the body must be a JSON object such as {EXAMPLE}, whose fields may be rate, burst, delay, nodelay and max_wait: {error}")
        })?;
        // Fields about waiting, and whether the body has them.
        let waiting_fields = [
            ("delay", body.delay.is_some()),
            ("nodelay", body.nodelay.is_some()),
            ("max_wait", body.max_wait.is_some()),
        ];
        if let Some((name, _)) = waiting_fields.iter().find(|(_, is_given)| *is_given)
            && !zone.algorithm.queues()
        {
            let algorithm = zone.algorithm;
            return Err(format!(
                "{name}: the zone counts by {algorithm}, which makes nothing wait; leave {name} out"
            ));
        }
        let requested = Self {
            rate: body.rate.map(|text| parse_rate(&text, zone)).transpose()?,
            burst: body.burst.map(|it| check_burst(it, zone)).transpose()?,
            delay: match (body.delay, body.nodelay) {
                (Some(_), Some(true)) => {
                    return Err(
                        "delay: with nodelay = true nothing waits; leave delay or nodelay out"
                            .to_owned(),
                    );
                }
                (_, Some(true)) => Some(Delay::Never),
                (Some(delay), _) => Some(Delay::Above(delay)),
                (None, Some(false)) => Some(Delay::Above(0)),
                (None, None) => None,
            },
            max_wait: body.max_wait.map(|it| parse_max_wait(&it)).transpose()?,
        };
        if let (Some(delay), Some(burst)) = (body.delay, requested.burst)
            && delay > burst
        {
            return Err(format!(
                "delay: {delay} is above burst {burst}, so nothing would wait; lower it to at most {burst}, or raise burst"
            ));
        }
        if requested == Self::default() {
            return Err(format!(
                "the body has no number to try; write at least one of rate, burst, delay, nodelay and max_wait, such as {EXAMPLE}"
            ));
        }
        Ok(requested)
    }

    /// Returns the zone with these numbers.
    pub(crate) fn apply_to_zone(&self, zone: &Zone) -> Zone {
        Zone {
            rate: self.rate.unwrap_or(zone.rate),
            ..zone.clone()
        }
    }

    /// Returns the limit with these numbers. `zone` has these numbers already.
    ///
    /// A window allows as many requests as its rate counts, whatever the burst was.
    pub(crate) fn apply_to_limit(&self, zone: &Zone, limit: Limit) -> Limit {
        let burst = if zone.algorithm.has_windows() {
            zone.rate.whole_count().map(|count| count - 1)
        } else {
            self.burst
        };
        let burst = burst.unwrap_or(limit.burst);
        let delay = match self.delay.unwrap_or(limit.delay) {
            Delay::Above(delay) => Delay::Above(delay.min(burst)),
            Delay::Never => Delay::Never,
        };
        Limit {
            burst,
            delay,
            max_wait: self.max_wait.unwrap_or(limit.max_wait),
            ..limit
        }
    }
}

/// Parses a rate for a zone.
fn parse_rate(text: &str, zone: &Zone) -> Result<Rate, String> {
    let rate = Rate::parse_or_unlimited(text);
    let rate = rate.map_err(|error| format!("rate: {error}; found {text:?}"))?;
    let reason = zone.why_unfit(rate);
    reason.map_or(Ok(rate), |reason| Err(format!("rate: {reason}")))
}

/// Checks a burst for a zone. Returns it as in a [`Limit`].
fn check_burst(burst: u32, zone: &Zone) -> Result<u32, String> {
    if zone.algorithm.has_windows() {
        let algorithm = zone.algorithm;
        return Err(format!(
            "burst: the zone counts by {algorithm}, which allows the requests of its rate in each period and no burst; leave burst out"
        ));
    }
    if zone.algorithm.queues() {
        return Ok(burst);
    }
    // A token bucket's burst includes the request itself.
    burst
        .checked_sub(1)
        .ok_or_else(|| "burst: 0 would let nothing through; write a whole number from 1".to_owned())
}

/// Parses a maximum wait.
fn parse_max_wait(text: &str) -> Result<Option<Duration>, String> {
    if text == "none" {
        return Ok(None);
    }
    parse_duration(text).map(Some).ok_or_else(|| {
        format!("max_wait: expected \"none\", or a duration such as \"5s\"; found {text:?}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::Settings;
    use limit::Cost;

    fn settings(zone: &str) -> Settings {
        let zone = format!("[zones.z]\nkey = \"$remote_addr\"\n{zone}");
        crate::test_settings::with_fields(&zone, "", "limits = [{ zone = \"z\" }]")
    }

    fn limit(burst: u32, delay: Delay) -> Limit {
        Limit {
            burst,
            max_wait: Some(Duration::from_secs(3)),
            ..Limit::unlimited(delay, Cost::ONE)
        }
    }

    /// Returns the rate of the zone and the limit, after the numbers of `body` are applied to them.
    fn apply(zone: &str, body: &str, old: Limit) -> (String, Limit) {
        let settings = settings(zone);
        let requested = OtherNumbers::read(body.as_bytes(), &settings.zones[0]).unwrap();
        let zone = requested.apply_to_zone(&settings.zones[0]);
        (zone.rate.to_string(), requested.apply_to_limit(&zone, old))
    }

    #[test]
    fn given_numbers_change_and_the_others_stay() {
        let old = limit(10, Delay::Above(4));
        let apply_to_old = |body| apply("rate = \"10r/s\"", body, old);
        assert_eq!(
            apply_to_old(r#"{"rate": "20r/s"}"#),
            ("20r/s".to_owned(), old)
        );
        assert_eq!(apply_to_old(r#"{"rate": "none"}"#).0, "none");
        let (rate, lower) = apply_to_old(r#"{"burst": 3, "max_wait": "none", "rate": null}"#);
        assert_eq!(rate, "10r/s");
        assert_eq!((lower.burst, lower.delay), (3, Delay::Above(3)));
        assert_eq!(lower.max_wait, None);
        let (_, free) = apply_to_old(r#"{"nodelay": true}"#);
        assert_eq!((free.burst, free.delay), (10, Delay::Never));
        assert_eq!(
            apply_to_old(r#"{"nodelay": false}"#).1.delay,
            Delay::Above(0)
        );
        assert_eq!(apply_to_old(r#"{"delay": 99}"#).1.delay, Delay::Above(10));
        let (_, short) = apply_to_old(r#"{"max_wait": "250ms"}"#);
        assert_eq!(short.max_wait, Some(Duration::from_millis(250)));
    }

    #[test]
    fn without_a_queue_burst_includes_the_request_and_a_window_allows_its_rate() {
        let old = limit(9, Delay::Never);
        let tokens = "rate = \"10r/s\"\nalgorithm = \"token_bucket\"";
        assert_eq!(apply(tokens, r#"{"burst": 5}"#, old).1.burst, 4);
        assert_eq!(apply(tokens, r#"{"rate": "5r/s"}"#, old).1.burst, 9);
        let window = "rate = \"10r/s\"\nalgorithm = \"fixed_window\"";
        assert_eq!(apply(window, r#"{"rate": "30r/s"}"#, old).1.burst, 29);
    }

    #[test]
    fn an_error_in_a_body_is_named_with_its_remedy() {
        // A line: body -> part of its error.
        let of_queue = r#"
            -> the body must be a JSON object such as
            [] -> the body must be a JSON object such as
            {} -> write at least one of rate, burst,
            {"rate": null} -> write at least one of rate, burst,
            {"keys": 1} -> unknown field `keys`
            {"rate": 20} -> expected a string
            {"rate": "fast"} -> rate: a rate is a count and a
            {"burst": -1} -> expected u32
            {"burst": "9"} -> expected u32
            {"delay": 1.5} -> expected u32
            {"nodelay": 1} -> expected a boolean
            {"max_wait": "5"} -> max_wait: expected "none", or a dur
            {"delay": 1, "nodelay": true} -> leave delay or nodelay out
            {"delay": 5, "burst": 4} -> delay: 5 is above burst 4"#;
        let of_window = r#"
            {"burst": 4} -> no burst; leave burst out
            {"rate": "0.5r/s"} -> fixed_window counts whole requests
            {"rate": "none"} -> that counts by fixed_window needs a rate"#;
        let of_bucket = r#"
            {"burst": 0} -> write a whole number from 1
            {"max_wait": "5s"} -> makes nothing wait; leave max_wait out
            {"nodelay": true} -> makes nothing wait; leave nodelay out"#;
        for (algorithm, cases) in [
            ("leaky_bucket", of_queue),
            ("fixed_window", of_window),
            ("token_bucket", of_bucket),
        ] {
            let zone = format!("rate = \"10r/s\"\nalgorithm = \"{algorithm}\"");
            let settings = settings(&zone);
            for line in cases.trim().lines() {
                let (body, expected) = line.split_once("->").unwrap();
                let body = body.trim();
                let error = OtherNumbers::read(body.as_bytes(), &settings.zones[0]).unwrap_err();
                assert!(error.contains(expected.trim()), "{body}: {error}");
            }
        }
    }
}
