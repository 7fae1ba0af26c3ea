//! Headline while nothing is wrong: no request was rejected or waited for long.
//!
//! This is the headline if no rule has found anything. A sample is the status of the gateway in one
//! second.

use super::super::finding::{Cause, Finding, Severity};
use super::super::recent::{Recent, sum};
use super::super::words::{count, listed, pace, part, seconds};
use crate::status::sample::Sample;

/// Describes seconds without long waits and without rejections.
pub(super) fn find_calm(recent: &Recent<'_>, now: &Sample) -> Finding {
    let left = recent.of_process(|it| it.left);
    let ended = sum(&recent.codes());
    let answered = ended.saturating_sub(left);
    let zones = now.zones.iter();
    let in_dry_run = zones.filter(|zone| recent.total(*zone, |it| it.dry_run) > 0);
    let in_dry_run: Vec<_> = in_dry_run.map(|zone| zone.name.to_string()).collect();
    let span = recent.seconds();
    let is_busy = now.origins.iter().any(|origin| origin.in_flight > 0);
    let requests = if ended == 0 && is_busy {
        format!("No request has ended in the last {span:.0} s.")
    } else if ended == 0 {
        format!("No requests in the last {span:.0} s.")
    } else if answered == 0 {
        let left = count(left, "client");
        format!("No answers in the last {span:.0} s: {left} left before one.")
    } else {
        let a_second = part(answered, 1) / span;
        let waited = longest_wait(recent, now).map_or_else(
            || "none delayed or rejected now".to_owned(),
            |longest| format!("none rejected; those that waited went on within {longest}"),
        );
        format!("Answers: {}, {waited}.", pace(a_second))
    };
    let dry_run = if in_dry_run.is_empty() {
        String::new()
    } else {
        let zones = listed(&in_dry_run);
        format!(" Dry run would have limited requests in {zones}.")
    };
    let evidence = requests + &describe_silent_origins(recent, now) + &dry_run;
    let silent = now.silent();
    let (cause, severity) = if ended == 0 || silent.is_some() {
        (Cause::Idle, Severity::None)
    } else {
        (Cause::Fine, Severity::Fine)
    };
    let title = match silent {
        Some(origin) => {
            let (name, silence) = (&origin.name, seconds(origin.silence()));
            format!("Origin {name} has answered nothing for {silence}")
        }
        None if answered > 0 => "Answers come as usual".to_owned(),
        None if is_busy => "All requests are under way".to_owned(),
        None => "No requests are waiting".to_owned(),
    };
    Finding {
        title,
        evidence,
        ..Finding::new(cause, severity)
    }
}

/// Formats the longest p95 of the waits in a zone, if any request waited.
fn longest_wait(recent: &Recent<'_>, now: &Sample) -> Option<String> {
    let longest = now
        .zones
        .iter()
        .filter_map(|zone| recent.longest_wait(zone));
    longest.max_by(f64::total_cmp).map(seconds)
}

/// Describes requests in flight at origins where none has ended in these seconds; may be empty.
fn describe_silent_origins(recent: &Recent<'_>, now: &Sample) -> String {
    let busy = now.origins.iter().filter(|origin| origin.in_flight > 0);
    let silent = busy.filter(|origin| recent.ended_at_origin(origin) == 0);
    let texts = silent.map(|origin| {
        let requests = count(origin.in_flight, "request");
        format!("{requests} at {}", origin.name)
    });
    let texts: Vec<_> = texts.collect();
    if texts.is_empty() {
        return String::new();
    }
    let span = recent.seconds();
    format!(
        " Under way: {}, of which none was answered in these {span:.0} s.",
        listed(&texts)
    )
}
