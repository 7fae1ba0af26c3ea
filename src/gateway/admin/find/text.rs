//! An experiment as the API shows it.

use limit::Moment;
use limit::find::{
    Criterion, Figure, FindReport, Level, Measured, Outcome, Purpose, StepRecord, StepVerdict,
};

use super::running::Running;
use crate::status::find::{Facts, abort_reason, conclusion, fragment, held_back, line};
use crate::status::timestamp::timestamp;
use crate::status::views::{self, FindFigure, FindLevel, FindOutcome, FindStep, Plain};

/// An experiment as the API shows it.
pub(in crate::admin) fn view(it: &Running, now: Moment) -> views::Find {
    let report = it.experiment.report(now);
    let is_over = it.experiment.is_over();
    let (level, purpose) = it.experiment.current();
    views::Find {
        id: it.id,
        origin: Plain::new(&it.origin),
        slo: Plain::new(&it.objective.to_string()),
        state: if is_over { "ended" } else { "running" }.into(),
        by: Plain::new(&it.by),
        began: timestamp(it.began),
        took: report.took.as_secs_f64(),
        requests: report.requests,
        current: (!is_over).then(|| at(level, purpose)),
        steps: report.steps.iter().map(step).collect(),
        result: report.outcome.as_ref().map(outcome),
        lines: if is_over {
            result(it, &report, now)
        } else {
            Vec::new()
        },
    }
}

fn shown(level: Level) -> Plain {
    Plain::new(&level.to_string())
}

fn at(level: Level, purpose: Purpose) -> FindLevel {
    let (find, value) = match level {
        Level::Rate(rate) => ("rate", rate.per_second()),
        Level::Places(places) => ("places", places.into()),
    };
    FindLevel {
        level: shown(level),
        find: find.into(),
        value,
        purpose: of_purpose(purpose).into(),
    }
}

fn step(it: &StepRecord) -> FindStep {
    FindStep {
        at: at(it.level, it.purpose),
        verdict: of_verdict(it.verdict).into(),
        figures: it.figures.iter().map(figure).collect(),
        waited: it.waited.map(|it| it.as_secs_f64()),
        at_once: it.at_once.into(),
        answers: it.answers,
        took: it.took.as_secs_f64(),
        back_to: it.back_to.map(shown),
        line: Plain::new(&line(it)),
    }
}

fn figure(it: &Measured) -> FindFigure {
    let (unit, below) = match it.condition {
        Criterion::Percentile { below, .. } => ("seconds", below.as_secs_f64()),
        Criterion::Errors { below, .. } => ("share", f64::from(below.millionths()) / 1e6),
    };
    FindFigure {
        name: Plain::new(&it.condition.name()),
        unit: unit.into(),
        below,
        value: it.value.map(|value| match value {
            Figure::Time(time) => time.as_secs_f64(),
            Figure::Share(share) => share,
        }),
    }
}

fn outcome(it: &Outcome) -> FindOutcome {
    match it {
        Outcome::Found(found) => FindOutcome {
            outcome: "found".into(),
            level: Some(shown(found.level)),
            low: Some(shown(found.low)),
            high: Some(shown(found.high)),
            at_once: Some(found.at_once.into()),
            at_edge: found.at_edge.map(u64::from),
            reason: None,
        },
        Outcome::AtLeast(level) => FindOutcome {
            outcome: "at_least".into(),
            level: Some(shown(*level)),
            ..FindOutcome::default()
        },
        Outcome::HeldBack(it) => FindOutcome {
            outcome: "at_least".into(),
            level: Some(shown(it.level)),
            reason: Some(Plain::new(&held_back(it))),
            ..FindOutcome::default()
        },
        Outcome::Unknown(level) => FindOutcome {
            outcome: "unknown".into(),
            level: Some(shown(*level)),
            ..FindOutcome::default()
        },
        Outcome::Aborted(reason, level) => FindOutcome {
            outcome: "aborted".into(),
            level: level.map(shown),
            reason: Some(Plain::new(&format!("ended: {}", abort_reason(*reason)))),
            ..FindOutcome::default()
        },
    }
}

fn of_purpose(it: Purpose) -> &'static str {
    match it {
        Purpose::Climb => "climb",
        Purpose::Recover => "recover",
        Purpose::Confirm => "confirm",
    }
}

fn of_verdict(it: StepVerdict) -> &'static str {
    match it {
        StepVerdict::Good => "ok",
        StepVerdict::Broke => "broke",
        StepVerdict::Idle | StepVerdict::HeldBack => "idle",
        StepVerdict::Undecided => "undecided",
    }
}

/// The result: what was found in words, as comments, and then as lines of the file.
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
