//! Steps and results of an experiment as text and as views.

use std::time::Duration;

use super::running::Running;
use crate::limit::Moment;
use crate::limit::find::{
    AbortReason, Figure, FindReport, Found, Level, Measured, Outcome, Purpose, StepRecord,
    StepVerdict,
};
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
        slo: Plain::new(&it.objective),
        state: if is_over { "ended" } else { "running" }.into(),
        by: Plain::new(&it.by),
        began: timestamp(it.began),
        took: report.took.as_secs_f64(),
        requests: report.requests,
        current: (!is_over).then(|| FindLevel {
            level: shown(level),
            purpose: of_purpose(purpose).into(),
        }),
        steps: report.steps.iter().map(step).collect(),
        outcomes: report.outcomes.iter().map(outcome).collect(),
        lines: if is_over {
            let lines = result(&report, it.began);
            lines.iter().map(|line| Plain::new(line)).collect()
        } else {
            Vec::new()
        },
    }
}

fn shown(level: Level) -> Plain {
    Plain::new(&level.to_string())
}

fn step(it: &StepRecord) -> FindStep {
    FindStep {
        level: shown(it.level),
        purpose: of_purpose(it.purpose).into(),
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
    FindFigure {
        name: Plain::new(&it.condition.name()),
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
        Outcome::Aborted(reason, level) => FindOutcome {
            outcome: "aborted".into(),
            level: level.map(shown),
            reason: Some(why(*reason).into()),
            ..FindOutcome::default()
        },
    }
}

fn of_purpose(it: Purpose) -> &'static str {
    match it {
        Purpose::Climb => "climb",
        Purpose::Recover => "recover",
        Purpose::Refine => "refine",
        Purpose::Retry => "retry",
        Purpose::Confirm => "confirm",
    }
}

fn of_verdict(it: StepVerdict) -> &'static str {
    match it {
        StepVerdict::Good => "ok",
        StepVerdict::Broke => "broke",
        StepVerdict::Idle => "idle",
        StepVerdict::Undecided => "undecided",
    }
}

fn why(it: AbortReason) -> &'static str {
    match it {
        AbortReason::FileChanged => "the file changed",
        AbortReason::ServersChanged => "a server of the origin came, went, or changed its health",
        AbortReason::BackedOff => "the back-off lowered the rate or the places",
        AbortReason::BrokenAtFirst => "the objective does not hold at the first level: start lower",
        AbortReason::NotRecovered => "the origin did not recover after the objective broke",
        AbortReason::OwnerLost => "nobody renewed it for 15 s",
        AbortReason::Stopped => "it was stopped",
        AbortReason::Unsteady => "the origin changes while it is measured",
        AbortReason::Overridden => "somebody else set or undid the override",
    }
}

/// A step as a line of text.
pub(super) fn line(it: &StepRecord) -> String {
    let figures: Vec<_> = it.figures.iter().map(measured).collect();
    let waited = it.waited.map_or("–".to_owned(), time);
    let back = it
        .back_to
        .map(|level| format!("   back to {level} at once"));
    format!(
        "{:>8}  {:<9}  {}  waited {waited:>7}  {:>5}{}",
        it.level.to_string(),
        of_verdict(it.verdict),
        figures.join("  "),
        time(it.took),
        back.unwrap_or_default()
    )
}

fn measured(it: &Measured) -> String {
    let value = it.value.map_or("–".to_owned(), |value| match value {
        Figure::Time(took) => time(took),
        Figure::Share(share) => percent(share),
    });
    format!("{} {value:>6}", it.condition.name())
}

/// Such as `81 ms` or `20 s`.
fn time(span: Duration) -> String {
    let seconds = span.as_secs_f64();
    if seconds < 1.0 {
        format!("{:.0} ms", seconds * 1e3)
    } else if seconds < 10.0 {
        format!("{seconds:.1} s")
    } else {
        format!("{seconds:.0} s")
    }
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent == 0.0 || percent >= 10.0 {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.1} %")
    }
}

/// How an experiment ended, in a few words.
pub(super) fn ending(report: &FindReport) -> String {
    let words: Vec<_> = report.outcomes.iter().map(in_words).collect();
    words.join("; ")
}

fn in_words(it: &Outcome) -> String {
    match it {
        Outcome::Found(it) if it.is_upper_bound => {
            format!("{} holds, the upper bound of the search", it.level)
        }
        Outcome::Found(it) => format!("{}, between {} and {}", it.level, it.low, it.high),
        Outcome::AtLeast(level) => format!("at least {level}; nobody asked for more"),
        Outcome::Aborted(reason, Some(level)) => format!("{}; {level} held before", why(*reason)),
        Outcome::Aborted(reason, None) => why(*reason).to_owned(),
    }
}

/// The result as lines of the file, with comments.
fn result(report: &FindReport, began: Moment) -> Vec<String> {
    let (requests, took) = (report.requests, time(report.took));
    let date = timestamp(began).to_string();
    let date = date.get(..16).unwrap_or_default().replace('T', " ");
    let evidence = format!("{date} UTC, {took}, {requests} requests");
    let of = |it: &Outcome| match it {
        Outcome::Found(found) => found_lines(found, &evidence),
        other => vec![format!("# {}; {evidence}", in_words(other))],
    };
    report.outcomes.iter().flat_map(of).collect()
}

fn found_lines(it: &Found, evidence: &str) -> Vec<String> {
    let range = if it.is_upper_bound {
        "the upper bound of the search: the origin may take more".to_owned()
    } else {
        format!("{} to {}", it.low, it.high)
    };
    let edge = it.at_edge.map(|edge| format!(", {edge} where it broke"));
    let at_once = format!(
        "the origin had {} at once{}",
        it.at_once,
        edge.unwrap_or_default()
    );
    match it.level {
        Level::Rate(rate) => vec![
            format!("rate = \"{rate}\"  # {range}, {evidence}"),
            format!("# {at_once}"),
        ],
        Level::Places(places) => vec![
            format!("max_in_flight = {places}  # {range}, {evidence}"),
            format!("# {at_once}"),
        ],
    }
}
