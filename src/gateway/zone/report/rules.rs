//! Rules of the headline for zones that reject or delay requests, or get many new keys.
//!
//! A rule returns a finding if it applies to the samples of the last seconds.

use std::net::IpAddr;

use super::advice;
use super::key_rules::shared_key;
use super::sample::{HeavyKey, ZoneSample};
use crate::gate::report::permits::{full_key, remedy_of_full, whereabouts};
use crate::gate::report::rules::LONG_WAIT;
use crate::status::headline::finding::{Cause, Finding, Severity, Suspicion};
use crate::status::headline::recent::{Recent, most};
use crate::status::headline::words::{self, count, pace, part, percent, seconds, whole};
use crate::status::plain::Plain;

/// New keys a second from which they are a flood, if at least half of the requests have one.
const FLOOD_PACE: f64 = 50.0;
/// Share of `max_keys` from which a zone is nearly full.
const NEARLY_FULL: f64 = 0.9;
/// Minimum number of rejections from which their cause is known, if all are in the last second.
const MIN_REJECTIONS: u64 = 3;
/// Minimum share of the rejections at which a key counts as their only cause.
const HALF: f64 = 0.5;
/// Minimum share of the rejections for which a key is named.
const NAMED_SHARE: f64 = 0.2;
/// Minimum share for which a key is named, as a multiple of the mean share of the limited keys.
const NAMED_MULTIPLE: f64 = 3.0;
/// Share of the rejections of one key from which no other key matters.
const NEARLY_ALL: f64 = 0.98;

/// Rule: many new keys come, or the zone is nearly full.
pub(crate) fn key_flood(recent: &Recent<'_>, zone: &ZoneSample) -> Option<Finding> {
    let name = &zone.name;
    let sum = |count: fn(&ZoneSample) -> u64| recent.total(zone, count);
    let (flooded, evicted) = (sum(|it| it.flooded), sum(|it| it.evicted));
    let with_new_key = sum(|it| it.new_keys) + flooded;
    let new_a_second = part(with_new_key, 1) / recent.seconds();
    let is_flood = new_a_second >= FLOOD_PACE && with_new_key * 2 >= recent.came(zone);
    let is_full = zone.max_keys > 0 && part(zone.keys, zone.max_keys) >= NEARLY_FULL;
    if !(is_flood || flooded > 0 || evicted > 0 || is_full) {
        return None;
    }
    let title = if is_flood || flooded > 0 {
        format!("{name} gets a flood of new keys: {}", pace(new_a_second))
    } else {
        format!("{name} is nearly full of keys")
    };
    let mut evidence = format!(
        "{} came with an unknown key in the last {:.0} s; {} of {} keys are in use.",
        count(with_new_key, "request"),
        recent.seconds(),
        whole(zone.keys),
        whole(zone.max_keys)
    );
    if evicted > 0 {
        evidence += &format!(" {} made room for others.", count(evicted, "key"));
    }
    if flooded > 0 {
        evidence += &format!(" {} shared one bucket.", count(flooded, "request"));
    }
    let remedy = if flooded > 0 {
        "`new_keys` holds the flood back. If these are real clients, raise it."
    } else if is_flood {
        "If these are not real clients, set `new_keys` in the zone, or choose a key that clients cannot invent."
    } else {
        "Raise `max_keys`, or lower `idle_timeout`."
    };
    let severity = Severity::bad_if(evicted > 0 && flooded == 0);
    Some(Finding {
        weight: new_a_second,
        title,
        evidence,
        remedy: remedy.to_owned(),
        ..Finding::about(name, Cause::KeyFlood, severity)
    })
}

/// Rule: a zone rejects requests.
pub(crate) fn rejecting(recent: &Recent<'_>, zone: &ZoneSample) -> Option<Finding> {
    let name = &zone.name;
    let rejected = recent.total(zone, |it| it.rejected);
    if rejected == 0 {
        return None;
    }
    let reasons = recent.counts(zone, |it| Some(&it.rejections));
    let reason = most(&reasons).map_or("burst", Plain::as_str);
    let why = match reason {
        "burst" if zone.burst.is_none() => "more came at once than `burst` allows",
        "burst" => "the queue is full, `burst` is reached",
        "max_wait" => "requests would wait longer than `max_wait`",
        "in_flight" => "as many requests of a key run as `in_flight` allows",
        "keys" => "the zone holds `max_keys` keys, and each has waiting requests",
        "store" => "the store does not decide",
        "restart" => "a part of the gateway failed and was started again; see the log",
        "paused" => "the zone is paused",
        _ => "the gateway is stopping",
    };
    let came = recent.came(zone);
    // The very first rejections say nothing about who causes them.
    let is_known = rejected >= MIN_REJECTIONS || rejected > zone.rejected;
    let top = recent.latest_or_before(zone, |it| it.rejected_now.first());
    let top = top.filter(|_| is_known);
    let is_of_key = ["burst", "max_wait", "in_flight"].contains(&reason);
    let full = full_key(recent, zone);
    let full = full.filter(|full| is_of_key && top.is_none_or(|top| top.key == full.key));
    let shared = shared_key(recent, zone, reason);
    let is_of_all = shared.as_ref().is_some_and(|it| it.is_of_all);
    let alone = top.is_some_and(|key| key.share >= HALF) && !is_of_all;
    let others = top.is_some_and(|key| key.share < NEARLY_ALL);
    // Not if one key causes all rejections. Limited keys include keys that only wait, so the
    // sentence would read as if more keys were rejected.
    let limited = advice::limited_keys(zone).filter(|_| !alone || others);
    let culprit = match &shared {
        Some(shared) => Some(shared.evidence.clone()),
        None => top
            .filter(|key| is_worth_naming(key, rejected, zone))
            .map(blame),
    };
    let severity = Severity::bad_if(!alone && rejected * 2 >= came);
    // A client that had a sufficient limit before a change needs no plan of its own.
    let is_of_client = alone && is_of_key && full.is_none() && shared.is_none() && !zone.is_login;
    let suspicion = if is_of_client {
        Suspicion::SuspectedAlone
    } else {
        Suspicion::Suspected
    };
    Some(Finding {
        weight: part(rejected, 1),
        title: format!(
            "{name} rejects {}",
            pace(part(rejected, 1) / recent.seconds())
        ),
        evidence: format!(
            "{}: {why}.{}{}{}",
            recent.share_of(rejected, came, "request"),
            culprit.unwrap_or_default(),
            full.map_or(String::new(), |it| format!(" {}", whereabouts(it))),
            limited.unwrap_or_default()
        ),
        remedy: match (full, shared) {
            (Some(full), _) => remedy_of_full(full),
            (None, Some(shared)) => shared.remedy,
            (None, None) if zone.is_login && is_of_key => login_remedy(top.filter(|_| alone)),
            (None, None) => remedy(zone, reason, alone, others),
        },
        suspicion,
        count: zone.rejected,
        ..Finding::about(name, Cause::Rejecting, severity)
    })
}

/// Returns whether a key has such a share of the rejections that its name is useful.
///
/// One of the first few rejections is a large share of them, and says nothing.
fn is_worth_naming(key: &HeavyKey, rejected: u64, zone: &ZoneSample) -> bool {
    let limited_keys = zone.advice.as_ref().map(|it| it.limited_keys);
    let mean_share = limited_keys.map(|keys| part(1, keys));
    let is_above_others = mean_share.is_some_and(|mean| key.share >= NAMED_MULTIPLE * mean);
    let are_several = key.share * part(rejected, 1) >= part(MIN_REJECTIONS, 1);
    key.share >= HALF || (key.share >= NAMED_SHARE && is_above_others && are_several)
}

/// Returns the remedy for a limit that protects passwords from guessing: it is meant to reject.
///
/// `culprit`: the key that causes most rejections, if there is one.
fn login_remedy(culprit: Option<&HeavyKey>) -> String {
    let Some(key) = culprit else {
        return "That is what the limit is for. The access log has the addresses of these clients."
            .to_owned();
    };
    let name = key.key.as_str();
    if name.parse::<IpAddr>().is_ok() {
        format!(
            "That is what the limit is for. If {name} goes on, add the address to `deny` of the route; the access log has its requests."
        )
    } else {
        format!(
            "That is what the limit is for. The access log has the requests of {name} and the addresses that they come from."
        )
    }
}

/// Returns a sentence for the key that causes most of the rejections.
fn blame(key: &HeavyKey) -> String {
    let plan = key.plan.as_ref();
    let plan = plan.map_or(String::new(), |plan| format!(" (plan {plan})"));
    let share = percent(key.share);
    format!(" {}{plan} causes {share} of the rejections.", key.key)
}

/// Returns the remedy for rejections.
///
/// `alone`: one key causes at least half of them. `others`: other keys are rejected, too.
fn remedy(zone: &ZoneSample, reason: &str, alone: bool, others: bool) -> String {
    let fixed = match reason {
        "keys" => "Raise `max_keys`, or hold a flood of keys back by `new_keys`.",
        "store" => "See Store.",
        "restart" | "stopping" => "",
        "paused" => "Resume it by undoing the override.",
        _ if alone && others => {
            "One client causes most of it, but others ask for more than their limits, too. If it may have more, give it a plan."
        }
        _ if alone => {
            "One client asks for more than its limit. If it may have more, give it a plan; others are not affected."
        }
        "in_flight" => {
            "If the origin can do more at once, raise `in_flight`; otherwise raise `burst` to let more wait."
        }
        _ => return advise_more(zone, reason),
    };
    fixed.to_owned()
}

/// Returns the advice to raise the rate, or else to let more requests wait.
///
/// With numbers of a replay if there are any. If waits are long already, more should not wait.
fn advise_more(zone: &ZoneSample, reason: &str) -> String {
    let rate = advice::rejections(zone).map_or(String::new(), |rates| format!(": {rates}"));
    let (field, effect) = match reason {
        "max_wait" => ("max_wait", "requests wait longer"),
        _ if zone.burst.is_none() => ("burst", "more requests through at once"),
        _ => ("burst", "more requests wait"),
    };
    let otherwise = if advice::are_waits_long(zone) {
        let wait = seconds(zone.oldest_wait);
        format!("Leave `{field}` as it is: requests wait {wait} already.")
    } else {
        format!("Otherwise raise `{field}` to let {effect}.")
    };
    format!("If the origin can do more, raise `rate`{rate}. {otherwise}")
}

/// Rule: requests wait in a zone.
pub(crate) fn waiting(recent: &Recent<'_>, zone: &ZoneSample) -> Option<Finding> {
    if zone.depth == 0 || zone.overridden.as_ref().is_some_and(|it| it.values.pause) {
        return None;
    }
    let name = &zone.name;
    let full = zone.full_key.as_ref();
    let departures = zone.rate.map_or(String::new(), |rate| {
        format!("Those of a key leave one by one, {}. ", pace(rate))
    });
    let departures = full.map_or(departures, |it| format!("{} ", whereabouts(it)));
    let rejections = match recent.total(zone, |it| it.rejected) {
        0 => "None is rejected.",
        _ => "Others are rejected.",
    };
    let is_deep = zone.burst.is_some_and(|burst| zone.depth_max * 2 >= burst);
    let severity = if zone.oldest_wait >= LONG_WAIT || is_deep {
        Severity::Warn
    } else {
        Severity::Fine
    };
    Some(Finding {
        weight: part(zone.depth, 1),
        title: format!(
            "{} in {name}, the oldest for {}",
            words::waiting(zone.depth),
            seconds(zone.oldest_wait)
        ),
        evidence: format!(
            "{departures}{rejections}{}",
            advice::limited_keys(zone).unwrap_or_default()
        ),
        remedy: full.map_or_else(
            || {
                format!(
                    "That is what the queue is for. If the wait is too long and the origin can do more, raise `rate`{}.",
                    advice::waits(zone).map_or(String::new(), |waits| format!(": {waits}"))
                )
            },
            remedy_of_full,
        ),
        suspicion: Suspicion::Suspected,
        ..Finding::about(name, Cause::Waiting, severity)
    })
}
