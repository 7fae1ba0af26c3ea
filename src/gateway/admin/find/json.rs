//! JSON of an experiment for the API.
//!
//! An experiment raises the level of an origin's gate, its rate or its number of permits, step by
//! step, until the objective is no longer kept. `status::find` has its texts.

use limit::Moment;
use limit::find::{
    Criterion, Figure, FindReport, Level, Measured, Outcome, Purpose, StepRecord, StepVerdict,
};
use serde_json::{Value, json};

use super::running::Running;
use crate::status::find::{Facts, abort_reason, conclusion, fragment, held_back, line};
use crate::status::plain::Plain;
use crate::status::timestamp::timestamp;

/// Builds the JSON of an experiment.
pub(in crate::admin) fn experiment_json(running: &Running, now: Moment) -> Value {
    let report = running.experiment.report(now);
    let is_over = running.experiment.is_over();
    let (level, purpose) = running.experiment.current();
    let lines = if is_over {
        result_lines(running, &report, now)
    } else {
        Vec::new()
    };
    json!({
        "id": running.id,
        "origin": Plain::new(&running.origin),
        "slo": running.objective.to_string(),
        "state": if is_over { "ended" } else { "running" },
        "by": Plain::new(&running.by),
        "began": timestamp(running.began),
        "took": report.took.as_secs_f64(),
        "requests": report.requests,
        "current": (!is_over).then(|| level_json(level, purpose)),
        "steps": report.steps.iter().map(step_json).collect::<Vec<_>>(),
        "result": report.outcome.as_ref().map(outcome_json),
        "lines": lines,
    })
}

/// Builds the JSON of a level and its purpose.
fn level_json(level: Level, purpose: Purpose) -> Value {
    let (find, value) = match level {
        Level::Rate(rate) => ("rate", rate.per_second()),
        Level::Permits(permits) => ("permits", permits.into()),
    };
    let purpose = match purpose {
        Purpose::Climb => "climb",
        Purpose::Recover => "recover",
        Purpose::Confirm => "confirm",
    };
    json!({ "level": level.to_string(), "find": find, "value": value, "purpose": purpose })
}

/// Builds the JSON of a step.
fn step_json(step: &StepRecord) -> Value {
    let mut json = level_json(step.level, step.purpose);
    json["verdict"] = match step.verdict {
        StepVerdict::Good => "ok",
        StepVerdict::Broke => "broke",
        StepVerdict::Idle | StepVerdict::HeldBack => "idle",
        StepVerdict::Undecided => "undecided",
    }
    .into();
    json["figures"] = step.figures.iter().map(figure_json).collect();
    json["waited"] = json!(step.waited.map(|wait| wait.as_secs_f64()));
    json["at_once"] = step.at_once.into();
    json["answers"] = step.answers.into();
    json["took"] = step.took.as_secs_f64().into();
    json["back_to"] = json!(step.back_to.map(|level| level.to_string()));
    json["line"] = line(step).into();
    json
}

/// Builds the JSON of the measured value of a condition of the objective.
fn figure_json(measured: &Measured) -> Value {
    let condition = &measured.condition;
    let (unit, below) = match condition {
        Criterion::Percentile { below, .. } => ("seconds", below.as_secs_f64()),
        Criterion::Errors { below, .. } => ("share", f64::from(below.millionths()) / 1e6),
    };
    let value = measured.value.map(|value| match value {
        Figure::Time(time) => time.as_secs_f64(),
        Figure::Share(share) => share,
    });
    json!({ "name": condition.name(), "unit": unit, "value": value, "below": below })
}

/// Builds the JSON of the end of the search: level, range, and reason.
fn outcome_json(outcome: &Outcome) -> Value {
    let (name, level, found, reason) = match outcome {
        Outcome::Found(found) => ("found", Some(found.level), Some(found), None),
        Outcome::AtLeast(level) => ("at_least", Some(*level), None, None),
        Outcome::HeldBack(cause) => ("at_least", Some(cause.level), None, Some(held_back(cause))),
        Outcome::Unknown(level) => ("unknown", Some(*level), None, None),
        Outcome::Aborted(reason, level) => {
            let reason = format!("ended: {}", abort_reason(*reason));
            ("aborted", *level, None, Some(reason))
        }
    };
    json!({
        "outcome": name,
        "level": level.map(|level| level.to_string()),
        "low": found.map(|found| found.low.to_string()),
        "high": found.map(|found| found.high.to_string()),
        "at_once": found.map(|found| found.at_once),
        "at_edge": found.and_then(|found| found.at_edge),
        "reason": reason,
    })
}

/// Returns the lines of the result: the conclusion as a comment, then lines for the file.
fn result_lines(running: &Running, report: &FindReport, now: Moment) -> Vec<Plain> {
    let ended = running.began + report.took.min(now.since(running.began));
    let ended = timestamp(ended).to_string();
    // Date and time to the minute.
    let ended = ended.get(..16).unwrap_or_default().replace('T', " ");
    let facts = Facts {
        origin: &running.origin,
        file: running.file,
        objective: &running.objective,
        when: &format!("{ended} UTC"),
    };
    let outcome = report.outcome.as_ref();
    let comment = outcome.map(|outcome| format!("# {}", conclusion(outcome, &running.objective)));
    let fragment = fragment(&facts, report);
    let lines = comment.as_deref().into_iter().chain(fragment.lines());
    lines.map(Plain::new).collect()
}
