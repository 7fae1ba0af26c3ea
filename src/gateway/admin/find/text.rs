//! JSON of an experiment for the API.

use limit::Moment;
use limit::find::{
    Criterion, Figure, FindReport, Level, Measured, Outcome, Purpose, StepRecord, StepVerdict,
};
use serde_json::{Value, json};

use super::running::Running;
use crate::status::find::{Facts, abort_reason, conclusion, fragment, held_back, line};
use crate::status::plain::Plain;
use crate::status::timestamp::timestamp;

/// Formats an experiment.
pub(in crate::admin) fn view(it: &Running, now: Moment) -> Value {
    let report = it.experiment.report(now);
    let is_over = it.experiment.is_over();
    let (level, purpose) = it.experiment.current();
    let lines = if is_over {
        result(it, &report, now)
    } else {
        Vec::new()
    };
    json!({
        "id": it.id,
        "origin": Plain::new(&it.origin),
        "slo": it.objective.to_string(),
        "state": if is_over { "ended" } else { "running" },
        "by": Plain::new(&it.by),
        "began": timestamp(it.began),
        "took": report.took.as_secs_f64(),
        "requests": report.requests,
        "current": (!is_over).then(|| at(level, purpose)),
        "steps": report.steps.iter().map(step).collect::<Vec<_>>(),
        "result": report.outcome.as_ref().map(outcome),
        "lines": lines,
    })
}

/// Formats a level, and its purpose.
fn at(level: Level, purpose: Purpose) -> Value {
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

/// JSON of a step.
fn step(it: &StepRecord) -> Value {
    let mut view = at(it.level, it.purpose);
    view["verdict"] = match it.verdict {
        StepVerdict::Good => "ok",
        StepVerdict::Broke => "broke",
        StepVerdict::Idle | StepVerdict::HeldBack => "idle",
        StepVerdict::Undecided => "undecided",
    }
    .into();
    view["figures"] = it.figures.iter().map(figure).collect();
    view["waited"] = json!(it.waited.map(|it| it.as_secs_f64()));
    view["at_once"] = it.at_once.into();
    view["answers"] = it.answers.into();
    view["took"] = it.took.as_secs_f64().into();
    view["back_to"] = json!(it.back_to.map(|it| it.to_string()));
    view["line"] = line(it).into();
    view
}

/// Formats the measured value of a condition of the objective.
fn figure(it: &Measured) -> Value {
    let (unit, below) = match it.condition {
        Criterion::Percentile { below, .. } => ("seconds", below.as_secs_f64()),
        Criterion::Errors { below, .. } => ("share", f64::from(below.millionths()) / 1e6),
    };
    let value = it.value.map(|value| match value {
        Figure::Time(time) => time.as_secs_f64(),
        Figure::Share(share) => share,
    });
    json!({ "name": it.condition.name(), "unit": unit, "value": value, "below": below })
}

/// Formats the end of the search: level, range, and reason.
fn outcome(it: &Outcome) -> Value {
    let shown = |level: Level| level.to_string();
    let (outcome, level, found, reason) = match it {
        Outcome::Found(found) => ("found", Some(found.level), Some(found), None),
        Outcome::AtLeast(level) => ("at_least", Some(*level), None, None),
        Outcome::HeldBack(it) => ("at_least", Some(it.level), None, Some(held_back(it))),
        Outcome::Unknown(level) => ("unknown", Some(*level), None, None),
        Outcome::Aborted(reason, level) => {
            let reason = format!("ended: {}", abort_reason(*reason));
            ("aborted", *level, None, Some(reason))
        }
    };
    json!({
        "outcome": outcome,
        "level": level.map(shown),
        "low": found.map(|it| shown(it.low)),
        "high": found.map(|it| shown(it.high)),
        "at_once": found.map(|it| it.at_once),
        "at_edge": found.and_then(|it| it.at_edge),
        "reason": reason,
    })
}

/// Formats the result: sentences as comments, and then lines of the file.
fn result(it: &Running, report: &FindReport, now: Moment) -> Vec<Plain> {
    let ended = it.began + report.took.min(now.since(it.began));
    let when = timestamp(ended).to_string();
    let when = when.get(..16).unwrap_or_default().replace('T', " ");
    let facts = Facts {
        origin: &it.origin,
        file: it.file,
        objective: &it.objective,
        when: &format!("{when} UTC"),
    };
    let concluded = report.outcome.as_ref();
    let comment = concluded.map(|outcome| format!("# {}", conclusion(outcome, &it.objective)));
    let file = fragment(&facts, report);
    comment
        .as_deref()
        .into_iter()
        .chain(file.lines())
        .map(Plain::new)
        .collect()
}
