//! Zones that limit nobody, because no request has their key.

use super::super::finding::{Cause, Finding, Severity};
use super::super::recent::Recent;
use super::super::words::{count, listed, pace, part, percent, seconds, whole};
use super::zones::came;
use crate::status::views::{Lately, Plain, ZoneSample};

/// Fewer requests than this say nothing of all of them.
const FEW: u64 = 20;
/// From this part of its requests without a key on, a limit limits as good as nobody.
const NEARLY_ALL: f64 = 0.95;
/// How many routes a title names.
const NAMED: usize = 3;

pub(super) fn no_key(recent: &Recent<'_>, zone: &ZoneSample) -> Option<Finding> {
    let name = &zone.name;
    let without = recent.total(zone, |it| it.no_key);
    let all = without + came(recent, zone);
    let now = Lately {
        no_key: without,
        all,
        span: recent.seconds(),
    };
    // Where few requests come, the last seconds say nothing.
    let Lately {
        no_key: without,
        all,
        span,
    } = if all < FEW { zone.lately } else { now };
    let share = part(without, all);
    if without < FEW || share < NEARLY_ALL {
        return None;
    }
    let keyless = recent.keyless(zone)?;
    let (key, routes) = (&keyless.key, on(&keyless.routes));
    let a_second = pace(part(without, 1) / span.max(1.0));
    let title = if without == all {
        format!("All requests{routes} ({a_second}) have no {key}: {name} limits none of them")
    } else {
        let share = percent(share);
        format!(
            "{share} of the requests{routes} ({a_second}) have no {key}: {name} does not limit them"
        )
    };
    Some(Finding {
        weight: part(without, 1),
        title,
        evidence: format!(
            "{} of {} in the last {} had an empty key, and an empty key is not limited.",
            whole(without),
            count(all, "request"),
            seconds(span)
        ),
        remedy: format!(
            "Correct the `key` of {name}, or let clients send what it is made of. If they may leave it out, give the route a second limit, by `$remote_addr`."
        ),
        ..Finding::about(name, Cause::NoKey, Severity::Warn)
    })
}

/// Where the limit is: ` on /a and /b`.
fn on(routes: &[Plain]) -> String {
    let mut names: Vec<_> = routes.iter().take(NAMED).map(Plain::to_string).collect();
    if routes.len() > NAMED {
        names.push("others".to_owned());
    }
    if names.is_empty() {
        return String::new();
    }
    format!(" on {}", listed(&names))
}
