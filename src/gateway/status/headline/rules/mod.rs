//! Rules of the headline: pure functions of the samples of the last seconds.
//!
//! Each rule returns findings. The first finding in the order of [`Cause`] becomes the headline,
//! and the others are named after it. Findings about a suffering origin come before any advice to
//! raise a rate.

mod calm;
mod leaving;
mod overrides;

use super::finding::{Cause, Finding, Severity, in_order};
use super::recent::Recent;
use super::sample::Headline;
use super::words::seconds;
use crate::gate::report::backing_off;
use crate::gate::report::rules as gates;
use crate::origin::report::rules as origins;
use crate::origin::report::{hanging, sample::OriginSample};
use crate::room::report::rules as rooms;
use crate::status::plain::Plain;
use crate::status::process::{certificates, file, rules as process};
use crate::status::sample::Sample;
use crate::store::report::rules as store;
use crate::zone::report::rules as zones;
use crate::zone::report::sample::ZoneSample;
use crate::zone::report::{advice, key_rules};

/// A rule about one zone or origin of one second, with access to the seconds before it.
type Rule<T> = fn(&Recent<'_>, &T) -> Option<Finding>;

/// Rules that may return several findings.
const LIST_RULES: [fn(&Recent<'_>, &Sample) -> Vec<Finding>; 3] = [
    process::connections_full,
    certificates::certificates,
    file::file_doubtful,
];

/// Rules about the process.
const PROCESS_RULES: [Rule<Sample>; 5] = [
    process::log_lost,
    store::store_out,
    store::store_refuses,
    overrides::maintenance,
    file::file_error,
];

/// Rules about each origin.
const ORIGIN_RULES: [Rule<OriginSample>; 16] = [
    store::refused_gate,
    origins::failing,
    hanging::hangs,
    origins::errors,
    origins::server_out,
    backing_off::backing_off,
    gates::crowd,
    leaving::leaving_origin,
    leaving::leaving_gate,
    gates::rejecting_at_gate,
    gates::waiting_at_gate,
    rooms::stuck,
    rooms::turns_lost,
    rooms::long_wait,
    overrides::gate,
    overrides::room,
];

/// Rules about each zone.
const ZONE_RULES: [Rule<ZoneSample>; 7] = [
    zones::key_flood,
    leaving::leaving_zone,
    key_rules::untrusted_proxy,
    zones::rejecting,
    key_rules::no_key,
    zones::waiting,
    overrides::zone,
];

/// Settings that send more requests to an origin if they are raised, as remedies name them.
const LOAD_FIELDS: [&str; 4] = ["`max_in_flight`", "`rate`", "`sessions`", "`admit`"];

/// Returns the headline before the second sample.
pub(super) fn before_samples() -> Headline {
    Headline {
        finding: Finding {
            title: "Looking: the first seconds are being measured".to_owned(),
            ..Finding::new(Cause::Idle, Severity::None)
        },
        ..Headline::default()
    }
}

/// Returns the headline of the last seconds.
pub(super) fn headline(recent: &Recent<'_>) -> Headline {
    let Some(now) = recent.last() else {
        return before_samples();
    };
    let mut found = Vec::new();
    found.extend(LIST_RULES.iter().flat_map(|rule| rule(recent, now)));
    found.extend(PROCESS_RULES.iter().filter_map(|rule| rule(recent, now)));
    for origin in &now.origins {
        found.extend(ORIGIN_RULES.iter().filter_map(|rule| rule(recent, origin)));
    }
    for zone in &now.zones {
        found.extend(ZONE_RULES.iter().filter_map(|rule| rule(recent, zone)));
    }
    in_order(&mut found);
    let warnings = found.iter().filter(|finding| finding.is_warning());
    let topics = warnings.map(Finding::topic).collect();
    let mut found = found.into_iter();
    let mut first = found.next().unwrap_or_else(|| calm::find_calm(recent, now));
    // An origin that is slow or silent must not get more requests.
    if LOAD_FIELDS.iter().any(|field| first.remedy.contains(field))
        && let Some(instead) = find_out_first(recent, now)
    {
        first.remedy = instead;
    }
    let about = first.about.as_ref();
    Headline {
        is_of_zone: about.is_some_and(|name| now.zone(name).is_some()),
        advised_rate: advice::advised_rate(now, &first),
        also: found.map(|it| Plain::new(&it.title)).collect(),
        found: topics,
        finding: first,
        since: None,
        ended: None,
    }
}

/// Latency from which to look at an origin before it gets more requests, in seconds.
const SLOW: f64 = 1.0;

/// Returns whether requests of an origin wait longer for a response than its responses take.
///
/// Under a second it is too early to say so, above all while no response has told how long they
/// take.
fn is_late(origin: &OriginSample) -> bool {
    let Some(unanswered) = &origin.unanswered else {
        return false;
    };
    let usual = origin.usual.map(|usual| usual.longest);
    let longest = usual.into_iter().chain(origin.latency.p99);
    let is_longer = match longest.max_by(f64::total_cmp) {
        Some(longest) if unanswered.silence > 0.0 => unanswered.oldest > longest,
        // The origin answers other requests now: a single one may well take longer.
        Some(longest) => unanswered.oldest > 3.0 * longest,
        None => unanswered.silence >= SLOW,
    };
    is_longer && unanswered.oldest >= SLOW
}

/// Advises to look at an origin that is slow or silent, instead of sending it more; `None`: none
/// is.
///
/// This also holds just after a hang, whose rejections are counted for some seconds more.
fn find_out_first(recent: &Recent<'_>, now: &Sample) -> Option<String> {
    let was_late = |origin| recent.latest_or_before(origin, |it| is_late(it).then_some(()));
    let is_silent =
        |origin: &OriginSample| origin.is_silent() && recent.ended_at_origin(origin) == 0;
    now.origins.iter().find_map(|origin| {
        let name = &origin.name;
        let what = match origin.latency.p95 {
            _ if is_silent(origin) => "has answered nothing for some seconds".to_owned(),
            Some(p95) if p95 >= SLOW => format!("takes {} for its slowest answers", seconds(p95)),
            _ if hanging::slower(recent, origin).is_some() => "is slower than usual".to_owned(),
            _ if was_late(origin).is_some() => "leaves requests without an answer".to_owned(),
            _ => return None,
        };
        Some(format!(
            "Origin {name} {what}: find out why before it gets more requests."
        ))
    })
}
