//! What each rule says. Each file has the situations of one kind of rules.

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
mod places;
mod rooms;
mod store;
mod time;
mod unreachable;
mod zones;

use std::collections::BTreeMap;

use super::recent::Recent;
use super::rules::headline;
use super::*;
use crate::status::views::{
    FileAndNow, GateSample, HeavyKey, OriginSample, Plain, RateAdvice, Replayed, ZoneSample,
};

fn counts(counts: &[(&str, u64)]) -> BTreeMap<Plain, u64> {
    let each = counts.iter().map(|(name, count)| ((*name).into(), *count));
    each.collect()
}

/// A second in which 10 requests passed: a zone, an origin with two servers.
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

/// A setting that is in force as the file has it.
fn both<T: Copy>(value: T) -> FileAndNow<T> {
    FileAndNow {
        file: Some(value),
        now: Some(value),
    }
}

/// The key that causes this part of the rejections.
fn heavy(key: &str, share: f64) -> Vec<HeavyKey> {
    vec![HeavyKey {
        key: key.into(),
        share,
        ..HeavyKey::default()
    }]
}

/// What replays found: 2r/s rejects one in a hundred, and 3r/s nobody.
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

/// The headline after ten such seconds.
fn after(second: &Sample) -> Headline {
    after_all(std::iter::repeat_n(second.clone(), 10))
}

/// The headline after these seconds.
fn after_all(seconds: impl IntoIterator<Item = Sample>) -> Headline {
    let samples = (100..).zip(seconds);
    let samples: Vec<_> = samples.map(|(seq, it)| Sample { seq, ..it }).collect();
    headline(&Recent::last_of(&samples, 10))
}

/// The headlines of an editor that is fed with seconds.
struct Fed {
    headlines: Headlines,
    editor: Editor,
    seq: u64,
}

impl Fed {
    fn new() -> Self {
        let headlines = Headlines::default();
        Self {
            editor: Editor::new(headlines.clone()),
            headlines,
            seq: 0,
        }
    }

    /// Feeds so many such seconds.
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

/// A change of the fine second, and the headline that it leads to: cause, severity, about, and
/// parts of its texts.
struct Situation {
    change: fn(&mut Sample),
    cause: &'static str,
    severity: &'static str,
    about: Option<&'static str>,
    says: &'static [&'static str],
    says_not: &'static [&'static str],
}

/// A warning about the origin.
const WARN: Situation = Situation {
    change: |_| {},
    cause: "",
    severity: "warn",
    about: Some("api"),
    says: &[],
    says_not: MORE,
};
/// The same that is bad.
const BAD: Situation = Situation {
    severity: "bad",
    ..WARN
};

/// A warning about the zone.
const ZONE: Situation = Situation {
    about: Some("per_client"),
    says_not: &[],
    ..WARN
};
/// The same that is bad.
const BAD_ZONE: Situation = Situation {
    severity: "bad",
    ..ZONE
};
/// Nothing is wrong.
const CALM: Situation = Situation {
    cause: "fine",
    severity: "fine",
    about: None,
    says_not: &[],
    ..WARN
};

/// More rate is never advised while an origin suffers.
const MORE: &[&str] = &["raise `rate`", "Raise"];

/// Checks that each situation has its headline.
fn check_all(situations: &[Situation]) {
    for (nth, situation) in situations.iter().enumerate() {
        let mut second = fine();
        (situation.change)(&mut second);
        let told = after(&second);
        let also: Vec<_> = told.also.iter().map(|it| format!("Also: {it}")).collect();
        let text = format!(
            "{}\n{}\n{}\n{}",
            told.title,
            told.evidence,
            told.remedy,
            also.join("\n")
        );
        let place = format!("situation {nth}: {} {text}", told.cause);
        assert_eq!(told.cause.as_str(), situation.cause, "{place}");
        assert_eq!(told.severity.as_str(), situation.severity, "{place}");
        let about = told.about.as_ref().map(Plain::as_str);
        assert_eq!(about, situation.about, "{place}");
        for part in situation.says {
            assert!(text.contains(part), "{part:?} is missing in {place}");
        }
        for part in situation.says_not {
            assert!(!text.contains(part), "{part:?} is in {place}");
        }
    }
}

#[test]
fn slow_paces_are_told_by_the_minute() {
    use super::words::pace;
    let told = [0.0, 1.0 / 60.0, 0.1, 9.94, 10.4].map(pace);
    let wanted = [
        "0.0 a second",
        "1.0 a minute",
        "0.1 a second",
        "9.9 a second",
        "10 a second",
    ];
    assert_eq!(told, wanted);
}
