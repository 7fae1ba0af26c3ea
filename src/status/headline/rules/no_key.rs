use super::super::finding::{Cause, Finding, Severity};
use super::super::recent::Recent;
use super::super::words::{listed, pace, part, percent};
use super::zones::came;
use crate::status::views::{Plain, ZoneSample};

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
    let share = part(without, all);
    if without < FEW || share < NEARLY_ALL {
        return None;
    }
    let keyless = recent.keyless(zone)?;
    let (key, routes) = (&keyless.key, on(&keyless.routes));
    let a_second = pace(part(without, 1) / recent.seconds());
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
            "{} had an empty key, and an empty key is not limited.",
            recent.share_of(without, all, "request")
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
