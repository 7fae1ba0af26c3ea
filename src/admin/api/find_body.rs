//! What an experiment is asked for, as JSON.

use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;

use super::span::from_1s_to;
use crate::admin::find::FigureSource;
use crate::admin::reply::{self, Refusal};
use crate::limit::find::{
    FindSettings, MAX_FIGURES, MAX_STEP, MIN_STEP, Objective, Only, Target, Timing,
};
use crate::limit::{Moment, Percent, Rate};
use crate::time::clock;

/// Most places that are tried.
const MAX_PLACES: u32 = 1_000_000;

/// How long nobody may wait at the gate, at most.
const MAX_IDLE: Duration = Duration::from_secs(600);

/// The longest time of a step that holds, and of a confirmation. A trial keeps its figures for four
/// hours, and may take twice as long as this.
const MAX_STEP_TIME: Duration = Duration::from_secs(3600);

/// The longest time that an experiment waits for a busier hour.
const MAX_WAIT_SECONDS: u64 = 24 * 60 * 60;

/// The body of a POST.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(super) struct FindBody {
    pub(super) origin: String,
    slo: String,
    /// `rate`, if it is not given, `places`, or `both`: the rate, and then the places.
    find: Option<String>,
    from: String,
    to: String,
    /// The bounds of places, where both are searched.
    places_from: Option<String>,
    places_to: Option<String>,
    step: Option<String>,
    min_step: Option<String>,
    confirm: Option<String>,
    /// How long nobody may wait at the gate.
    wait: Option<String>,
    /// The time until which to wait for requests.
    until: Option<String>,
    /// Figures of the origin's own: `http://127.0.0.1:9100/metrics node_load1 < 8`.
    #[serde(default)]
    watch: Vec<String>,
    /// Which requests count: `class=interactive`, or `route=/reports`.
    only: Option<String>,
    /// Says what would be done, and does nothing.
    pub(super) dry_run: Option<bool>,
}

impl FindBody {
    /// In a few words, for the log and the history.
    pub(super) fn describe(&self) -> String {
        let what = self.find.as_deref().unwrap_or("rate");
        let mut all = vec![format!("{what} {} to {}", self.from, self.to)];
        if let (Some(from), Some(to)) = (&self.places_from, &self.places_to) {
            all.push(format!("places {from} to {to}"));
        }
        if let Some(only) = &self.only {
            all.push(format!("only {only}"));
        }
        for watch in &self.watch {
            all.push(format!("watch {watch}"));
        }
        all.push(self.slo.clone());
        all.join(", ")
    }

    /// What it asks for.
    ///
    /// # Errors
    ///
    /// Says which field is wrong, and what would be right.
    pub(super) fn settings(&self, now: Moment) -> Result<FindSettings, Refusal> {
        let objective = self.slo.parse::<Objective>();
        let objective =
            objective.map_err(|error| bad(format!("slo is {:?}: {error}", self.slo)))?;
        let step = parse_step(self.step.as_deref().unwrap_or("5%"))?;
        let mut timing = Timing::default();
        for (name, text, part) in [
            ("min_step", &self.min_step, &mut timing.min_step),
            ("confirm", &self.confirm, &mut timing.confirm),
        ] {
            if let Some(text) = text {
                let time = from_1s_to(MAX_STEP_TIME, text);
                *part = time.ok_or_else(|| {
                    bad(format!(
                        "{name} is {text:?}; it must be from 1s to 1h, such as \"20s\""
                    ))
                })?;
            }
        }
        if let Some(text) = &self.wait {
            timing.idle = parse_wait(text)?;
        }
        timing.max_step = timing.max_step.max(timing.min_step * 3);
        let until = match &self.until {
            Some(_) if self.wait.is_some() => {
                return Err(bad("wait and until are both given; give one".to_owned()));
            }
            Some(until) => Some(parse_until(until, now)?),
            None => None,
        };
        let only = self.only.as_ref().map(|text| {
            let only = text.parse::<Only>();
            only.map_err(|error| bad(format!("only is {text:?}: {error}")))
        });
        Ok(FindSettings {
            figures: self.sources()?.into_iter().map(|it| it.bound).collect(),
            only: only.transpose()?,
            targets: self.targets()?,
            objective,
            step,
            until,
            timing,
        })
    }

    /// Where the figures are read that are watched.
    ///
    /// # Errors
    ///
    /// Says which one is wrong, or that there are too many.
    pub(super) fn sources(&self) -> Result<Vec<FigureSource>, Refusal> {
        if self.watch.len() > MAX_FIGURES {
            return Err(bad(format!("watch has more than {MAX_FIGURES} figures")));
        }
        let mut all: Vec<FigureSource> = Vec::with_capacity(self.watch.len());
        for text in &self.watch {
            let source = text.parse::<FigureSource>();
            let source = source.map_err(|error| bad(format!("watch: {error}")))?;
            if all.contains(&source) {
                return Err(bad(format!("watch has {text:?} twice; give it once")));
            }
            all.push(source);
        }
        Ok(all)
    }

    fn targets(&self) -> Result<Vec<Target>, Refusal> {
        let find = self.find.as_deref().unwrap_or("rate");
        let more = (self.places_from.as_deref(), self.places_to.as_deref());
        if find != "both" && more != (None, None) {
            let message = "places_from and places_to are for \"find\": \"both\"";
            return Err(bad(format!("{message}; find is {find:?}")));
        }
        match (find, more) {
            ("rate", _) => Ok(vec![rates(&self.from, &self.to)?]),
            ("places", _) => Ok(vec![places(("from", &self.from), ("to", &self.to))?]),
            ("both", (Some(from), Some(to))) => {
                let places = places(("places_from", from), ("places_to", to))?;
                Ok(vec![rates(&self.from, &self.to)?, places])
            }
            ("both", _) => {
                let message = "find is \"both\"; places_from or places_to is missing: \
                               the bounds of the places, such as \"4\" and \"64\"";
                Err(bad(message.to_owned()))
            }
            (other, _) => {
                let message =
                    format!("find is {other:?}; it must be \"rate\", \"places\" or \"both\"");
                Err(bad(message))
            }
        }
    }
}

fn bad(message: String) -> Refusal {
    reply::bad_query(message)
}

/// A step that is kept as it is given.
fn parse_step(text: &str) -> Result<Percent, Refusal> {
    let step = text.parse::<Percent>();
    let step = step.map_err(|error| bad(format!("step is {text:?}: {error}")))?;
    if (MIN_STEP..=MAX_STEP).contains(&step) {
        return Ok(step);
    }
    Err(bad(format!(
        "step is {text:?}; it must be from {MIN_STEP} to {MAX_STEP}"
    )))
}

/// How long nobody may wait at the gate.
fn parse_wait(text: &str) -> Result<Duration, Refusal> {
    from_1s_to(MAX_IDLE, text).ok_or_else(|| {
        bad(format!(
            "wait is {text:?}; it must be from 1s to 10m, such as \"5m\". To wait for a busier \
             hour, give until"
        ))
    })
}

/// A time within the next 24 hours.
fn parse_until(text: &str, now: Moment) -> Result<Moment, Refusal> {
    let wrong = || {
        bad(format!(
            "until is {text:?}; it must be a time within the next 24 hours, such as \
             \"2026-12-01T18:00:00Z\""
        ))
    };
    let until = text.parse::<Timestamp>().map_err(|_| wrong())?;
    let until = u64::try_from(until.as_nanosecond()).map_err(|_| wrong())?;
    let until = clock::from_wall(Moment::from_nanos(until));
    let is_soon = until > now && until.since(now).as_secs() <= MAX_WAIT_SECONDS;
    is_soon.then_some(until).ok_or_else(wrong)
}

fn rates(from: &str, to: &str) -> Result<Target, Refusal> {
    let rate = |name: &str, text: &str| {
        let rate = text.parse::<Rate>();
        let rate = rate.map_err(|error| bad(format!("{name} is {text:?}: {error}")))?;
        if rate.is_unlimited() {
            return Err(bad(format!(
                "{name} is {text:?}; give a rate such as 50r/s"
            )));
        }
        Ok(rate)
    };
    let (low, high) = (rate("from", from)?, rate("to", to)?);
    if low.per_second() >= high.per_second() {
        return Err(bad(format!(
            "from is {from:?} and to is {to:?}; from must be the lower rate"
        )));
    }
    Ok(Target::Rate {
        from: low,
        to: high,
    })
}

/// Each bound with the name of its field.
fn places(from: (&str, &str), to: (&str, &str)) -> Result<Target, Refusal> {
    let places = |(name, text): (&str, &str)| {
        let places = text.parse::<u32>().ok();
        places
            .filter(|it| (1..=MAX_PLACES).contains(it))
            .ok_or_else(|| {
                bad(format!(
                    "{name} is {text:?}; it must be a number of places from 1 to {MAX_PLACES}"
                ))
            })
    };
    let (low, high) = (places(from)?, places(to)?);
    if low >= high {
        let ((from, low), (to, high)) = (from, to);
        return Err(bad(format!(
            "{from} is {low:?} and {to} is {high:?}; {from} must be the lower number"
        )));
    }
    Ok(Target::Places {
        from: low,
        to: high,
    })
}
