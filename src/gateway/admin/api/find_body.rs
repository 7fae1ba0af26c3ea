//! Parameters of an experiment, as JSON.

use std::time::Duration;

use limit::find::{FindSettings, MAX_STEP, MIN_STEP, Objective, Target, Timing};
use limit::{Percent, Rate};
use serde::Deserialize;

use super::body::from_1s_to;
use crate::admin::reply::{self, Refusal};

/// Maximum number of permits that is tried.
const MAX_PERMITS: u32 = 1_000_000;

/// Maximum of `wait`.
const MAX_IDLE: Duration = Duration::from_secs(600);

/// Maximum duration of a step that holds, and of a confirmation.
///
/// A trial keeps its figures for four hours, and may take twice this duration.
const MAX_STEP_TIME: Duration = Duration::from_secs(3600);

/// Body of a POST.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(super) struct FindBody {
    pub(super) origin: String,
    /// Objective, such as `p95<400ms, errors<0.5%`.
    slo: String,
    /// A rate, such as `50r/s`, or a number of requests at once, such as `4`.
    from: String,
    /// Upper bound, of the same kind as `from`.
    to: String,
    /// Growth of the level from step to step, in percent.
    step: Option<String>,
    /// Minimum duration of a step.
    min_step: Option<String>,
    /// Duration of the confirmation.
    confirm: Option<String>,
    /// Maximum duration without any waiter at the gate.
    wait: Option<String>,
}

impl FindBody {
    /// Describes the experiment in a few words, for the log and the history.
    pub(super) fn describe(&self) -> String {
        format!("{} to {}, {}", self.from, self.to, self.slo)
    }

    /// Parses the settings.
    ///
    /// # Errors
    ///
    /// Names the wrong field and a correct value.
    pub(super) fn settings(&self) -> Result<FindSettings, Refusal> {
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
        Ok(FindSettings {
            target: self.target()?,
            objective,
            step,
            timing,
        })
    }

    /// Parses the searched setting and its range.
    fn target(&self) -> Result<Target, Refusal> {
        let Self { from, to, .. } = self;
        let is_number = |text: &str| text.bytes().all(|it| it.is_ascii_digit());
        let (target, is_lower, what) = if is_number(from) && is_number(to) {
            let (from, to) = (permits("from", from)?, permits("to", to)?);
            (Target::Permits { from, to }, from < to, "number")
        } else {
            let (from, to) = (rate("from", from)?, rate("to", to)?);
            let is_lower = from.per_second() < to.per_second();
            (Target::Rate { from, to }, is_lower, "rate")
        };
        if !is_lower {
            return Err(bad(format!(
                "from is {from:?} and to is {to:?}; from must be the lower {what}"
            )));
        }
        Ok(target)
    }
}

/// Refuses the body with this message.
fn bad(message: String) -> Refusal {
    reply::bad_query(message)
}

/// Parses the growth from step to step, and checks its range.
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

/// Parses the maximum duration without any waiter at the gate.
fn parse_wait(text: &str) -> Result<Duration, Refusal> {
    from_1s_to(MAX_IDLE, text).ok_or_else(|| {
        bad(format!(
            "wait is {text:?}; it must be from 1s to 10m, such as \"5m\""
        ))
    })
}

/// Parses a rate. `name`: name of the field.
fn rate(name: &str, text: &str) -> Result<Rate, Refusal> {
    let rate = text.parse::<Rate>();
    let rate = rate.map_err(|error| bad(format!("{name} is {text:?}: {error}")))?;
    if rate.is_unlimited() {
        let message = format!("{name} is {text:?}; give a rate such as 50r/s");
        return Err(bad(message));
    }
    Ok(rate)
}

/// Parses a number of requests in flight. `name`: name of the field.
fn permits(name: &str, text: &str) -> Result<u32, Refusal> {
    let permits = text.parse::<u32>().ok();
    let permits = permits.filter(|it| (1..=MAX_PERMITS).contains(it));
    permits.ok_or_else(|| {
        bad(format!(
            "{name} is {text:?}; it must be a rate such as 50r/s, or a number from 1 to {MAX_PERMITS}"
        ))
    })
}
