//! Formats the advice as text: the lines to paste, a table of the busiest keys, and notes.

use std::fmt::Write;

use gateway::replay::Form;
use jiff::Timestamp;
use jiff::tz::Offset;
use limit::Moment;

use super::advice::Advice;
use super::caution::caution;
use super::fit::{Fit, WIDTHS};
use super::gate::gate_fields;
use super::paste::toml_to_paste;
use super::survey::Survey;
use crate::display::{percent, share};

/// Earliest time of a trace that counts as a date: in 2001, in nanoseconds since 1970.
///
/// Smaller numbers are times since the start of the trace.
const EARLIEST_DATE: u64 = 1_000_000_000_000_000_000;

/// Returns the complete advice.
pub fn report(advice: &Advice) -> String {
    let survey = &advice.survey;
    let mut text = format!("{}\n{}\n", headline(advice), basis(survey));
    text.push_str(&caution(survey).unwrap_or_default());
    let target = if survey.has_file_zone() {
        "Add these fields to the tables of the file, the first to that of the route"
    } else {
        "Paste this at the end of a gateway.toml, in place of the limits of its last route and of a zone of this name"
    };
    let _ = write!(text, "\n{target}:\n\n");
    text.push_str(&toml_to_paste(advice));
    if let Some(fields) = gate_fields(survey) {
        text.push_str("\nFor a gate in front of the origin, in its table:\n\n[origins.NAME]\n");
        text.push_str(&fields);
    }
    add_table(&mut text, advice);
    add_notes(&mut text, survey);
    text
}

// Writing to a String cannot fail, here and below.

/// Returns the first line: the busiest key, and its share of the requests.
pub(super) fn headline(advice: &Advice) -> String {
    let Some(key) = advice.busiest() else {
        return String::new();
    };
    let part = percent(share(key.requests, advice.survey.spool.count));
    format!("{} made {part} of all requests.", key.shown)
}

/// Returns the basis of the advice: numbers of requests and keys, and the duration.
pub(super) fn basis(survey: &Survey) -> String {
    let count = survey.spool.count;
    let keys = survey.keys.key_count();
    let (first, last) = survey.spool.span();
    let is_trace = survey.form == Some(Form::Csv);
    let [first_offset, last_offset] = survey.utc_offsets.unwrap_or_default();
    let from = show_time(first, first_offset, is_trace);
    let to = show_time(last, last_offset, is_trace);
    let by = match (&survey.zone, survey.form) {
        (_, Some(Form::Csv)) => "as the trace names them".to_owned(),
        (Some(zone), _) if survey.has_file_zone() => format!("of zone {zone}"),
        (Some(zone), _) => format!("as zone {zone} logged them"),
        _ => format!("by {}", survey.template),
    };
    format!("{count} requests of {keys} keys {by}, {from} to {to}")
}

/// Adds the busiest keys, with the rate and burst that fit each.
fn add_table(text: &mut String, advice: &Advice) {
    let survey = &advice.survey;
    let widths = &WIDTHS[..advice.widths];
    let _ = write!(text, "\n{:<40}{:>10}{:>10}", "", "requests", "of all");
    for (_, width) in widths {
        let _ = write!(text, "{width:>8}");
    }
    let _ = writeln!(text, "{:>12}{:>8}", "rate", "burst");
    let all = survey.spool.count;
    let mut add_row = |name: &str, requests: u64, fit: Fit| {
        let part = percent(share(requests, all));
        let _ = write!(text, "{name:<40}{requests:>10}{part:>10}");
        let Fit { peaks, rate, burst } = fit;
        for (peak, _) in peaks.iter().zip(widths) {
            let _ = write!(text, "{peak:>8}");
        }
        let _ = writeln!(text, "{:>12}{burst:>8}", rate.to_string());
    };
    add_row("all keys", all, advice.all);
    if let (Some(busiest), Some(others)) = (advice.busiest(), advice.others) {
        let name = format!("without {}", busiest.shown);
        add_row(&name, all - busiest.requests, others);
    }
    for (key, fit) in &advice.heaviest {
        add_row(&key.shown, key.requests, *fit);
    }
    text.push_str(
        "(The most requests of one key within each window, and the rate and burst at which none of them waits or is rejected.)\n",
    );
}

/// Adds notes about the log and about lines that were left out.
fn add_notes(text: &mut String, survey: &Survey) {
    if survey.spool.is_coarse {
        text.push_str(
            "The log has whole seconds: requests of one second count as simultaneous, so the burst may be larger\n\
             than necessary.\n",
        );
    }
    // The other formats have times of arrival, or the durations of requests.
    if survey.form == Some(Form::Combined) {
        text.push_str("Times are the ends of responses, not the arrivals of requests (Apache's are arrivals).\n");
    }
    if survey.form == Some(Form::Haproxy) {
        text.push_str("HAProxy writes no time zone: times are read as UTC.\n");
    }
    let keyless = match survey.zone {
        Some(_) if survey.has_file_zone() => {
            "requests are not limited by this zone, and are left out"
        }
        Some(_) => "requests were not decided by this zone, and are left out",
        None => "requests have no key, and are not limited",
    };
    let late = survey.order.late;
    let notes = [
        (survey.keyless, keyless),
        (
            late,
            "requests are more than 60 s or a million requests out of order, and count at the time of the request before them",
        ),
        (
            survey.keys.forgotten,
            "times a key was forgotten because there are too many:\n\
             peaks are still correct, the number of keys is not, and a busy key may be missing",
        ),
        (
            survey.load.early,
            "seconds were counted for the origin's gate before all of their requests were read: their times are too\n\
             far apart",
        ),
    ];
    for (count, what) in notes {
        if count > 0 {
            let _ = writeln!(text, "{count} {what}");
        }
    }
    // If few requests are late, the error is small.
    if late > survey.spool.count / 100 {
        text.push_str(
            "The numbers above may be wrong: sort the log by time first. If it begins with the newest line, use\n\
             tac. Merge logs of several hosts by time.\n",
        );
    }
    if (survey.form == Some(Form::Csv) || survey.zone.is_some()) && !survey.has_file_zone() {
        let _ = writeln!(
            text,
            "The log does not contain the parts of its keys: the key to paste is that of --key, {}.",
            survey.template
        );
    }
    for variable in &survey.missing_variables {
        let _ = writeln!(
            text,
            "The log does not contain ${variable}: keys are made without it."
        );
    }
}

/// Formats a time as date and time by the log's clock.
///
/// A time of a trace that starts at zero is shown in seconds.
fn show_time(time: Moment, utc_offset: i32, is_trace: bool) -> String {
    let nanos = i128::from(time.as_nanos());
    let offset = Offset::from_seconds(utc_offset).unwrap_or(Offset::UTC);
    match Timestamp::from_nanosecond(nanos) {
        Ok(date) if !is_trace || time.as_nanos() >= EARLIEST_DATE => {
            let date = offset.to_datetime(date);
            date.strftime("%Y-%m-%d %H:%M:%S").to_string()
        }
        _ => format!("{} s", nanos / 1_000_000_000),
    }
}
