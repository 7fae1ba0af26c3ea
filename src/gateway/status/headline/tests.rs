//! Tests of the headline's rules. Each file has the situations of one kind of rules.
//!
//! A situation is the sample of one second, which repeats. Most tests change a fine second (`fine`)
//! and check the headline after ten of them (`reported`), by parts of its text (`says`).

mod advice;
mod blind_spots;
mod calm;
mod certificates;
mod file;
mod gates;
mod hanging;
mod leaving;
mod origins;
mod overrides;
mod permits;
mod rooms;
mod store;
mod time;
mod unreachable;
mod zones;

use std::collections::BTreeMap;

use limit::Moment;

use super::finding::Finding;
use super::recent::Recent;
use super::rules::headline;
use super::*;
use crate::gate::report::sample::{ConfiguredAndEffective, GateSample};
use crate::origin::report::sample::OriginSample;
use crate::overrides::Override;
use crate::status::plain::Plain;
use crate::time::clock;
use crate::zone::report::sample::{HeavyKey, RateAdvice, Replayed, ZoneSample};

/// Returns these counts by name.
fn counts(counts: &[(&str, u64)]) -> BTreeMap<Plain, u64> {
    let counts = counts.iter();
    counts
        .map(|(name, count)| ((*name).into(), *count))
        .collect()
}

/// A second in which 10 requests passed the zone `per_client` to the origin `api` with two servers.
fn fine() -> Sample {
    Sample {
        codes: counts(&[("2xx", 10)]),
        zones: vec![ZoneSample {
            name: "per_client".into(),
            rate: Some(10.0),
            passed: 10,
            keys: 5,
            max_keys: 100,
            ..ZoneSample::default()
        }],
        origins: vec![OriginSample {
            name: "api".into(),
            healthy: 2,
            servers: 2,
            codes: counts(&[("2xx", 10)]),
            ..OriginSample::default()
        }],
        ..Sample::default()
    }
}

/// A setting whose configured value is effective.
fn both<T: Copy>(value: T) -> ConfiguredAndEffective<T> {
    ConfiguredAndEffective {
        file: Some(value),
        now: Some(value),
    }
}

/// Instant of this time of the wall clock.
fn instant(wall: &str) -> Moment {
    let wall: jiff::Timestamp = wall.parse().unwrap();
    let nanos = u64::try_from(wall.as_nanosecond()).unwrap();
    clock::from_wall(Moment::from_nanos(nanos))
}

/// An override by `ops`, until some time on the first of December.
fn overriding<V>(values: V) -> Override<V> {
    Override {
        values,
        since: Moment::default(),
        until: instant("2026-12-01T15:00:00Z"),
        by: "ops".into(),
        owner: None,
    }
}

/// A key that causes this share of the rejections.
fn heavy(key: &str, share: f64) -> Vec<HeavyKey> {
    vec![HeavyKey {
        key: key.into(),
        share,
        ..HeavyKey::default()
    }]
}

/// Advice from replays: 2r/s rejects one in a hundred, and 3r/s nobody.
fn advice() -> RateAdvice {
    let tried = |rate: &str, share_rejected, wait_p99| Replayed {
        rate: rate.into(),
        share_rejected,
        wait_p99: Some(wait_p99),
        ..Replayed::default()
    };
    RateAdvice {
        span: 600.0,
        keys: 30,
        limited_keys: 30,
        now: tried("1r/s", 0.4, 20.0),
        faster: vec![tried("2r/s", 0.01, 3.0), tried("3r/s", 0.0, 0.4)],
    }
}

/// Headline after ten equal seconds.
fn after(second: &Sample) -> Headline {
    after_all(std::iter::repeat_n(second.clone(), 10))
}

/// Headline after these seconds.
fn after_all(seconds: impl IntoIterator<Item = Sample>) -> Headline {
    let samples = (100..).zip(seconds);
    let samples: Vec<_> = samples
        .map(|(seq, second)| Sample { seq, ..second })
        .collect();
    headline(&Recent::last_of(&samples, 10))
}

/// An editor, which makes the headline of each sample, and its headlines.
struct EditorFixture {
    headlines: Headlines,
    editor: Editor,
    seq: u64,
}

impl EditorFixture {
    fn new() -> Self {
        let headlines = Headlines::default();
        Self {
            editor: Editor::new(headlines.clone()),
            headlines,
            seq: 0,
        }
    }

    /// Feeds the same second `times` times.
    fn feed(&mut self, second: &Sample, times: usize) {
        for nth in 0..times {
            self.seq += 1;
            let mut sample = Sample {
                seq: self.seq,
                time: f64::from(u32::try_from(self.seq).unwrap()),
                ..second.clone()
            };
            if let Some(change) = &mut sample.change {
                change.ago += f64::from(u32::try_from(nth).unwrap());
            }
            self.editor.edit(&mut sample);
        }
    }
}

/// Returns the gate of the origin.
fn gate_of(second: &mut Sample) -> &mut GateSample {
    second.origins[0].gate.get_or_insert_default()
}

/// Makes the zone reject `count` requests a second for this reason.
fn rejects<'a>(second: &'a mut Sample, reason: &str, count: u64) -> &'a mut ZoneSample {
    let zone = &mut second.zones[0];
    zone.rejected = count;
    zone.rejections = counts(&[(reason, count)]);
    zone
}

/// Makes `count` clients disconnect from the zone before their slot, after `after` seconds.
fn leave(second: &mut Sample, count: u64, after: f64) -> &mut ZoneSample {
    let zone = &mut second.zones[0];
    (zone.left, zone.left_after) = (count, Some(after));
    zone
}

/// Makes `depth` requests wait in the zone, the oldest for `oldest` seconds.
fn wait(second: &mut Sample, depth: u64, oldest: f64) -> &mut ZoneSample {
    let zone = &mut second.zones[0];
    (zone.depth, zone.oldest_wait) = (depth, oldest);
    zone
}

/// Text of a headline.
struct Reported(String);

/// Texts that advise more rate for a zone. No headline has them while an origin suffers.
const MORE: &[&str] = &["raise `rate`", "Raise"];

/// Checks the label of the headline after ten fine seconds with `change`.
///
/// The label is the severity, the cause and the subject.
#[track_caller]
fn reported(label: &str, change: impl FnOnce(&mut Sample)) -> Reported {
    let mut second = fine();
    change(&mut second);
    let headline = after(&second);
    let about = headline.finding.about.as_ref().map(Plain::as_str);
    let parts = [
        Some(headline.finding.severity.label()),
        Some(headline.finding.cause.label()),
        about,
    ];
    let also = headline.also.iter().map(|it| format!("\nAlso: {it}"));
    let Finding {
        title,
        evidence,
        remedy,
        ..
    } = &headline.finding;
    let text = format!("{title}\n{evidence}\n{remedy}");
    let text = text + &also.collect::<String>();
    let found: Vec<_> = parts.into_iter().flatten().collect();
    assert_eq!(found.join(" "), label, "{text}");
    let reported = Reported(text);
    if about == Some("per_client") || found[1] == "connections_full" {
        reported
    } else {
        reported.not(MORE)
    }
}

impl Reported {
    /// Checks that the text has these parts in this order; `…` stands for any text.
    #[track_caller]
    fn says(self, parts: &str) -> Self {
        let mut rest = self.0.as_str();
        for part in parts.split(" … ") {
            let found = rest.split_once(part);
            rest = found
                .unwrap_or_else(|| panic!("{part:?} is missing in {}", self.0))
                .1;
        }
        self
    }

    /// Checks that the text has none of these parts.
    #[track_caller]
    fn not(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(!self.0.contains(part), "{part:?} is in {}", self.0);
        }
        self
    }
}

#[test]
fn rates_below_one_in_ten_seconds_are_shown_a_minute() {
    use super::words::pace;
    let reported = [0.0, 1.0 / 60.0, 0.1, 9.94, 10.4].map(pace);
    let expected = [
        "0.0 a second",
        "1.0 a minute",
        "0.1 a second",
        "9.9 a second",
        "10 a second",
    ];
    assert_eq!(reported, expected);
}
