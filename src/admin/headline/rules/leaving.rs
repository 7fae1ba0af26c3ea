use super::super::finding::{Cause, Finding, Severity};
use super::super::recent::Recent;
use super::super::words::{count, part, percent, seconds, whole};
use crate::admin::views::ZoneSample;

/// From this part of the requests that waited on, clients that leave are worth a headline.
const MANY: f64 = 0.2;
/// Fewer than this are no trend.
const FEW: u64 = 3;

/// Clients leave before the turns of their requests.
pub(super) fn leaving(recent: &Recent<'_>, zone: &ZoneSample) -> Option<Finding> {
    let name = &zone.name;
    let sum = |count: fn(&ZoneSample) -> u64| recent.of_zone(name, count);
    let (left, went_on) = (sum(|it| it.cancelled), sum(ZoneSample::out));
    let share = part(left, left + went_on);
    if left < FEW || share < MANY {
        return None;
    }
    let after = recent.longest_of_zone(name, |it| it.left_after);
    let typically = after.map_or(String::new(), |after| {
        format!(", after about {}", seconds(after))
    });
    let shorter = after.map(|after| format!("set `max_wait` = {}", whole_span(after)));
    let faster = zone.rate.filter(|_| went_on > 0).map(|rate| {
        let enough = rate * part(left + went_on, went_on);
        format!("raise `rate` to {}", enough_rate(enough))
    });
    let helps: Vec<_> = [shorter, faster].into_iter().flatten().collect();
    let helps = helps.join(", or ");
    let helps = if helps.is_empty() {
        "Raise `rate`, or set `max_wait`".to_owned()
    } else {
        format!("{}{}", helps[..1].to_uppercase(), &helps[1..])
    };
    Some(Finding {
        cause: Cause::Leaving,
        severity: Severity::bad_if(share >= 0.5),
        weight: share,
        about: Some(name.clone()),
        title: format!(
            "{} leave {name} before their turn{typically}",
            percent(share)
        ),
        evidence: format!(
            "{} of {} in the last {:.0} s: the client closed its connection while its request waited.",
            whole(left),
            count(left + went_on, "request"),
            recent.seconds()
        ),
        remedy: format!("{helps}: who will not get an answer in time should be told at once."),
    })
}

/// A time for the file: whole seconds, or tenths below one.
fn whole_span(seconds: f64) -> String {
    if seconds < 0.9 {
        format!("{:.0}ms", (seconds * 10.0).ceil().max(1.0) * 100.0)
    } else {
        format!("{:.0}s", seconds.round())
    }
}

/// A rate for the file: whole requests a second, or a minute where that is less than one.
fn enough_rate(a_second: f64) -> String {
    if a_second < 1.0 {
        format!("{:.0}r/m", (a_second * 60.0).ceil())
    } else {
        format!("{:.0}r/s", a_second.ceil())
    }
}
