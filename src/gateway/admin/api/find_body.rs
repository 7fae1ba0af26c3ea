//! Parameters of an experiment, as JSON.
//!
//! An experiment raises the level of an origin's gate, its rate or its number of requests at once,
//! step by step, until the objective is no longer kept.

use std::time::Duration;

use limit::find::{FindSettings, MAX_STEP, MIN_STEP, Objective, Target, Timing};
use limit::{Percent, Rate};
use serde::Deserialize;

use crate::admin::body::{duration, value};
use crate::admin::reply::{Refusal, bad_request};

/// Maximum number of permits (requests at once) that is tried.
const MAX_PERMITS: u32 = 1_000_000;

/// Maximum of `wait`, and its text.
const MAX_IDLE: (Duration, &str) = (Duration::from_secs(600), "10m");

/// Maximum duration of a step that holds, and of a confirmation, and its text.
///
/// A trial keeps its figures for four hours, and may take twice this duration.
const MAX_STEP_TIME: (Duration, &str) = (Duration::from_secs(3600), "1h");

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
        let objective: Objective = value("slo", &self.slo)?;
        let step = parse_step(self.step.as_deref().unwrap_or("5%"))?;
        let mut timing = Timing::default();
        if let Some(text) = &self.min_step {
            timing.min_step = duration("min_step", text, MAX_STEP_TIME, "20s")?;
        }
        if let Some(text) = &self.confirm {
            timing.confirm = duration("confirm", text, MAX_STEP_TIME, "20s")?;
        }
        if let Some(text) = &self.wait {
            timing.idle = duration("wait", text, MAX_IDLE, "5m")?;
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
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let (target, is_lower, what) = if is_number(from) && is_number(to) {
            let (from, to) = (parse_permits("from", from)?, parse_permits("to", to)?);
            (Target::Permits { from, to }, from < to, "number")
        } else {
            let (from, to) = (value::<Rate>("from", from)?, value::<Rate>("to", to)?);
            let is_lower = from.per_second() < to.per_second();
            (Target::Rate { from, to }, is_lower, "rate")
        };
        if !is_lower {
            return Err(bad_request(format!(
                "from is {from:?} and to is {to:?}; from must be the lower {what}"
            )));
        }
        Ok(target)
    }
}

/// Parses the growth from step to step, and checks its range.
fn parse_step(text: &str) -> Result<Percent, Refusal> {
    let step: Percent = value("step", text)?;
    if (MIN_STEP..=MAX_STEP).contains(&step) {
        return Ok(step);
    }
    Err(bad_request(format!(
        "step is {text:?}; it must be from {MIN_STEP} to {MAX_STEP}"
    )))
}

/// Parses a number of requests in flight. `name`: name of the field.
fn parse_permits(name: &str, text: &str) -> Result<u32, Refusal> {
    let permits = text.parse::<u32>().ok();
    let permits = permits.filter(|permits| (1..=MAX_PERMITS).contains(permits));
    permits.ok_or_else(|| {
        bad_request(format!(
            "{name} is {text:?}; it must be a rate such as 50r/s, or a number from 1 to {MAX_PERMITS}"
        ))
    })
}
