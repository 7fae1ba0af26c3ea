use serde_json::{Value, json};

use super::conclusion::conclusion;
use crate::limit::find::{
    AbortReason, Figure, FindPlan, FindReport, Level, Objective, Outcome, Purpose, StepRecord,
    StepVerdict,
};

/// A step as JSON: times in seconds, shares from 0 to 1.
#[must_use]
pub fn step_json(step: &StepRecord) -> Value {
    let figures = step.figures.iter().map(|it| {
        json!({
            "figure": it.condition.name(),
            "condition": it.condition.to_string(),
            "value": it.value.map(|value| match value {
                Figure::Time(time) => time.as_secs_f64(),
                Figure::Share(share) => share,
            }),
        })
    });
    json!({
        "level": level(step.level),
        "purpose": match step.purpose {
            Purpose::Climb => "climb",
            Purpose::Recover => "recover",
            Purpose::Refine => "refine",
            Purpose::Retry => "retry",
            Purpose::Confirm => "confirm",
        },
        "verdict": match step.verdict {
            StepVerdict::Good => "ok",
            StepVerdict::Broke => "broke",
            StepVerdict::Idle => "idle",
            StepVerdict::Undecided => "ended",
        },
        "figures": figures.collect::<Vec<_>>(),
        "waited": step.waited.map(|it| it.as_secs_f64()),
        "at_once": step.at_once,
        "answers": step.answers,
        "took": step.took.as_secs_f64(),
        "back_to": step.back_to.map(level),
    })
}

/// A report as JSON.
#[must_use]
pub fn report_json(report: &FindReport, objective: &Objective) -> Value {
    let outcomes = report.outcomes.iter();
    json!({
        "objective": objective.to_string(),
        "outcomes": outcomes.map(|it| outcome(it, objective)).collect::<Vec<_>>(),
        "steps": report.steps.iter().map(step_json).collect::<Vec<_>>(),
        "requests": report.requests,
        "took": report.took.as_secs_f64(),
    })
}

/// A plan as JSON: times in seconds.
#[must_use]
pub fn plan_json(plan: &FindPlan) -> Value {
    let levels = |all: &Vec<Level>| all.iter().copied().map(level).collect::<Vec<_>>();
    json!({
        "levels": plan.levels.iter().map(levels).collect::<Vec<_>>(),
        "shortest": plan.shortest.as_secs_f64(),
        "longest": plan.longest.as_secs_f64(),
    })
}

fn outcome(outcome: &Outcome, objective: &Objective) -> Value {
    let text = conclusion(outcome, objective);
    match outcome {
        Outcome::Found(it) => json!({
            "outcome": "found",
            "level": level(it.level),
            "low": level(it.low),
            "high": level(it.high),
            "at_once": it.at_once,
            "at_edge": it.at_edge,
            "is_upper_bound": it.is_upper_bound,
            "text": text,
        }),
        Outcome::AtLeast(it) => {
            json!({ "outcome": "at_least", "level": level(*it), "text": text })
        }
        Outcome::Aborted(reason, held) => json!({
            "outcome": "aborted",
            "reason": reason_name(*reason),
            "level": held.map(level),
            "text": text,
        }),
    }
}

fn level(level: Level) -> Value {
    match level {
        Level::Rate(rate) => json!({ "rate": rate.to_string(), "per_second": rate.per_second() }),
        Level::Places(places) => json!({ "places": places }),
    }
}

fn reason_name(reason: AbortReason) -> &'static str {
    match reason {
        AbortReason::FileChanged => "file_changed",
        AbortReason::ServersChanged => "servers_changed",
        AbortReason::BackedOff => "backed_off",
        AbortReason::BrokenAtFirst => "broken_at_first",
        AbortReason::NotRecovered => "not_recovered",
        AbortReason::OwnerLost => "owner_lost",
        AbortReason::Stopped => "stopped",
        AbortReason::Unsteady => "unsteady",
        AbortReason::Overridden => "overridden",
    }
}
