//! The advice as text, and as lines of a `gateway.toml`.

mod collapse;
mod keys;

use std::fmt::Write;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::Offset;

use self::collapse::collapse;
use self::keys::{heaviest, keys};
use super::advice::{Advice, Reach, ZoneAdvice};
use super::enough::caution;
use super::group::{Counted, Resolution};
use super::hours::Class;
use super::pace::MAX_WAIT;
use super::paste::{gate, guessed_waits, toml, zone_of};
use super::plans;
use super::survey::Surveyed;
use super::trial::Trial;
use super::windows::WIDTHS;
use crate::limit::Moment;
use crate::replay::{Form, Spread};
use crate::tools::shown::{percent, share};

/// The quantiles that are shown beside the peak.
const SHARES: [(f64, &str); 2] = [(0.5, "p50"), (0.99, "p99")];

/// The earliest time of a trace that is a date: the year 2001. A trace may count from its start.
const EARLIEST_DATE: u64 = 1_000_000_000_000_000_000;

/// The whole advice, for people.
#[must_use]
pub fn report(advice: &Advice) -> String {
    let survey = &advice.survey;
    let mut text = String::new();
    head(&mut text, survey);
    if let Some(zone) = &advice.zone {
        windows(&mut text, survey);
        keys(&mut text, survey);
        heaviest(&mut text, survey, zone);
        chosen(&mut text, survey, zone, advice.outliers.is_some());
        text.push_str(&advice.outliers_told());
        table(&mut text, survey, zone);
        text.push_str(&guessed_waits(survey, &zone.chosen).unwrap_or_default());
    }
    plans::table(&mut text, survey, &advice.plans);
    if (survey.facts.form == Some(Form::Csv) || survey.facts.zone.is_some())
        && !survey.facts.is_of_file
    {
        let _ = writeln!(
            text,
            "\nThe log does not say what its keys are made of: the key below is what --key says, {}.",
            survey.facts.template
        );
    }
    if let Some(lines) = gate(survey) {
        text.push_str("\nFor a gate in front of the origin, in its table:\n\n");
        text.push_str(&lines);
    }
    text.push_str(&collapse(&survey.collapsed).unwrap_or_default());
    if let Some(lines) = plans::toml(survey, &zone_of(survey), &advice.plans) {
        text.push_str("\nFor the plans, in their tables (keys and file stay as they are):\n\n");
        text.push_str(&lines);
    }
    if let Some(lines) = toml(advice) {
        text.push_str("\nPaste this at the end of a gateway.toml, below the route to limit:\n\n");
        text.push_str(&lines);
    }
    text
}

// Writing to a String cannot fail, here and below.

/// What the advice rests on: requests, keys and time.
pub(super) fn basis(survey: &Surveyed) -> String {
    let count = survey.rest.requests();
    let keys = survey.rest.keys.count;
    let without = if survey.plans.is_empty() {
        ""
    } else {
        " without a plan"
    };
    let (first, last) = survey.span();
    let is_trace = survey.facts.form == Some(Form::Csv);
    let from = shown(first, survey.ahead[0], is_trace);
    let to = shown(last, survey.ahead[1], is_trace);
    let by = match (&survey.facts.zone, survey.facts.form) {
        (_, Some(Form::Csv)) => "as the trace names them".to_owned(),
        (Some(zone), _) if survey.facts.is_of_file => format!("of zone {zone}"),
        (Some(zone), _) => format!("as zone {zone} logged them"),
        _ => format!("by {}", survey.facts.template),
    };
    format!("{count} requests of {keys} keys{without} {by}, {from} to {to}")
}

fn head(text: &mut String, survey: &Surveyed) {
    let _ = writeln!(text, "{}", basis(survey));
    text.push_str(&caution(survey).unwrap_or_default());
    let _ = match survey.resolution() {
        Resolution::Second => writeln!(
            text,
            "The log has whole seconds: requests within one second count as if they came at once. So the burst is that of the\n\
             worst case, and may be much larger than necessary; shorter windows are not known. A log with milliseconds is\n\
             more exact: drip's own as JSON, or a CSV of nginx's $msec and the key."
        ),
        Resolution::Millisecond => writeln!(
            text,
            "The log has milliseconds: requests within one count as if they came at once."
        ),
        Resolution::Finer => writeln!(text, "The log has times finer than a millisecond."),
    };
    let coarser = match survey.coarser() {
        Some(Resolution::Second) => "whole seconds",
        Some(_) => "whole milliseconds",
        None => "",
    };
    if !coarser.is_empty() {
        let _ = writeln!(
            text,
            "This is so of the finest log. The coarsest has {coarser}: its requests within one count as if they came at\n\
             once, so the burst may be larger than necessary."
        );
    }
    notes(text, survey);
}

/// What is special in the log, and what is left out.
fn notes(text: &mut String, survey: &Surveyed) {
    if survey.facts.form.is_some_and(Form::is_of_ends) {
        text.push_str("Times are when responses ended, not when requests came (Apache's are when they came).\n");
    }
    if survey.facts.form == Some(Form::Haproxy) {
        text.push_str("HAProxy writes no time zone: times are read as UTC.\n");
    }
    let keyless = match survey.facts.zone {
        Some(_) if survey.facts.is_of_file => {
            "requests are not limited by this zone, and are left out"
        }
        Some(_) => "requests were not decided on by this zone, and are left out",
        None => "requests have no key, and are not limited",
    };
    let late = survey.facts.late;
    let notes = [
        (survey.facts.keyless, keyless),
        (
            late,
            "requests stood more than 60 s, or a million requests, behind later ones, and count as if they had come then",
        ),
        (
            survey.groups().map(|group| group.keys.dropped).sum(),
            "times a key was forgotten to make room for another, as there are too many to remember at once:\n\
             peaks are still right, the number of keys is not",
        ),
        (
            survey.facts.load.early(),
            "seconds were counted for the gate of the origin before all of their requests were read, as the times are too\n\
             far apart to remember all seconds at once",
        ),
        (
            survey.facts.unplanned,
            "requests were of more plans than are judged on their own, and count as without one",
        ),
    ];
    for (count, what) in notes {
        if count > 0 {
            let _ = writeln!(text, "{count} {what}");
        }
    }
    let all: u64 = survey.groups().map(Counted::requests).sum();
    if late > all / 100 {
        text.push_str(
            "That is too many for the numbers below to be right: put the log into order first. If it begins with the\n\
             newest line, use tac.\n",
        );
    }
    if survey.facts.has_unasked_plans {
        text.push_str("The log names plans: with --zone, each is judged on its own.\n");
    }
    for span in survey.facts.hours.unmet() {
        let _ = writeln!(text, "No request came in {span}.");
    }
    for variable in &survey.facts.untold {
        let _ = writeln!(
            text,
            "The log does not have ${variable}; keys are made without it."
        );
    }
}

/// A time by the log's clock, or in seconds where a trace counts from its start.
fn shown(at: Moment, ahead: i32, is_trace: bool) -> String {
    let nanos = i128::from(at.as_nanos());
    let offset = Offset::from_seconds(ahead).unwrap_or(Offset::UTC);
    match Timestamp::from_nanosecond(nanos) {
        Ok(time) if !is_trace || at.as_nanos() >= EARLIEST_DATE => {
            let time = offset.to_datetime(time);
            time.strftime("%Y-%m-%d %H:%M:%S").to_string()
        }
        _ => format!("{} s", nanos / 1_000_000_000),
    }
}

fn windows(text: &mut String, survey: &Surveyed) {
    let _ = write!(text, "\n{:<26}", "requests within");
    for (_, width) in WIDTHS {
        let _ = write!(text, "{width:>24}");
    }
    let _ = write!(text, "\n{:<26}", "");
    for _ in WIDTHS {
        let [(_, low), (_, high)] = SHARES;
        let _ = write!(text, "{low:>8}{high:>8}{:>8}", "peak");
    }
    text.push('\n');
    for (class, name) in named(survey) {
        for (of, spreads) in [
            ("all together", &survey.rest.all),
            ("each key", &survey.rest.each),
        ] {
            if spreads.of(class, 0).count() > 0 {
                let _ = write!(text, "{:<26}", format!("{of}{name}"));
                for width in 0..WIDTHS.len() {
                    spread(text, spreads.of(class, width), survey.knows(width));
                }
                text.push('\n');
            }
        }
    }
    let _ = write!(text, "{:<26}", "the keys, by their peaks");
    for (width, peaks) in survey.rest.keys.spreads.iter().enumerate() {
        spread(text, peaks, survey.knows(width));
    }
    text.push_str("\n(Of windows with any request; they are cut at whole seconds.)\n");
}

fn spread(text: &mut String, spread: &Spread, is_known: bool) {
    if is_known {
        let [(low, _), (high, _)] = SHARES;
        let (low, high, peak) = (spread.at(low), spread.at(high), spread.peak());
        let _ = write!(text, "{low:>8}{high:>8}{peak:>8}");
    } else {
        let _ = write!(text, "{:>8}{:>8}{:>8}", "?", "?", "?");
    }
}

/// The classes that are reported separately, and their names.
fn named(survey: &Surveyed) -> Vec<(Class, &'static str)> {
    let hours = &survey.facts.hours;
    match (hours.names_good(), hours.names_bad()) {
        (false, false) => vec![(Class::Good, "")],
        (false, true) => vec![(Class::Good, ", not bad"), (Class::Bad, ", bad hours")],
        _ => vec![
            (Class::Good, ", good hours"),
            (Class::Bad, ", bad hours"),
            (Class::Other, ", other hours"),
        ],
    }
}

fn chosen(text: &mut String, survey: &Surveyed, advice: &ZoneAdvice, has_outliers: bool) {
    let candidate = advice.chosen.candidate;
    let hours = &survey.facts.hours;
    let good = match (hours.names_good(), hours.names_bad()) {
        (true, _) => "of the good hours",
        (false, true) => "that is not in the bad hours",
        (false, false) if has_outliers => "of the log, without those that stand out",
        (false, false) => "of the log",
    };
    let (rate, burst) = (candidate.rate, candidate.burst);
    let _ = match survey.rest.peak(Class::Good) {
        1 => writeln!(
            text,
            "\nrecommended: rate {rate}, as no key came twice in a second {good}: no less than the most in a minute,\n\
             and the slowest at which none of these requests waits longer than {MAX_WAIT} s; and burst {burst}, the smallest that rejects none of them."
        ),
        _ => writeln!(
            text,
            "\nrecommended: rate {rate}, the most that one key came in a second {good}; and burst {burst}, the smallest\n\
             that rejects none of these requests."
        ),
    };
    let (bad, peak) = (Class::Bad as usize, survey.rest.peak(Class::Bad));
    let rejected = share(advice.chosen.rejected[bad], advice.chosen.requests[bad]);
    let pace = advice.bad_pace.map(|pace| format!("as fast as {pace}"));
    let pace = pace.unwrap_or_else(|| format!("{peak} times in a second"));
    let _ = match advice.reach {
        Reach::NoneBad if hours.names_bad() => writeln!(text, "No request came in the bad hours."),
        Reach::NoneBad => Ok(()),
        Reach::Below => writeln!(
            text,
            "A key of the bad hours came {pace}: the rate is below that, and {} of the bad requests are\n\
             rejected.",
            percent(rejected)
        ),
        Reach::Above => writeln!(
            text,
            "There is no rate above the good hours and below the bad ones: no key of the bad hours came more than\n\
             {pace}. {} of the bad requests are rejected. Look for another --key that separates them,\n\
             or limit all requests together (--key all).",
            percent(rejected)
        ),
    };
}

fn table(text: &mut String, survey: &Surveyed, advice: &ZoneAdvice) {
    let chosen = advice.chosen.candidate;
    let hours = &survey.facts.hours;
    let of = [
        (
            Class::Good,
            "of good",
            hours.names_good() || hours.names_bad(),
        ),
        (Class::Bad, "of bad", hours.names_bad()),
    ];
    let _ = write!(
        text,
        "\n  {:>10}{:>8}{:>10}{:>11}{:>11}{:>11}",
        "rate", "burst", "delayed", "p99 wait", "longest", "rejected"
    );
    for (_, name, _) in of.iter().filter(|it| it.2) {
        let _ = write!(text, "{name:>10}");
    }
    text.push('\n');
    let half = chosen.burst / 2;
    let double = chosen.burst.saturating_mul(2).max(2);
    for trial in &advice.trials {
        let candidate = trial.candidate;
        if ![half, chosen.burst, double].contains(&candidate.burst) {
            continue;
        }
        let mark = if candidate == chosen { '>' } else { ' ' };
        let _ = write!(
            text,
            "{mark} {:>10}{:>8}{:>10}{:>11}{:>11}{:>11}",
            candidate.rate.to_string(),
            candidate.burst,
            percent(trial.share_delayed()),
            span(trial.wait(0.99)),
            span(trial.wait(1.0)),
            percent(trial.share_rejected()),
        );
        for (class, ..) in of.iter().filter(|it| it.2) {
            let _ = write!(text, "{:>10}", percent(rejected_of(trial, *class)));
        }
        text.push('\n');
    }
    text.push_str("(The waits are of requests that wait");
    if of.iter().any(|it| it.2) {
        text.push_str("; the last columns are the share of these hours that is rejected");
    }
    text.push_str(".)\n");
}

fn rejected_of(trial: &Trial, class: Class) -> f64 {
    share(
        trial.rejected[class as usize],
        trial.requests[class as usize],
    )
}

/// A duration with about three digits.
fn span(span: Duration) -> String {
    let seconds = span.as_secs_f64();
    match seconds {
        0.0 => "-".to_owned(),
        _ if seconds < 1.0 => format!("{:.1} ms", seconds * 1000.0),
        _ if seconds < 1000.0 => format!("{seconds:.2} s"),
        _ => format!("{seconds:.0} s"),
    }
}
