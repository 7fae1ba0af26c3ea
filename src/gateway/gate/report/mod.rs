//! Status of the origins' gates, as the API and the live samples show it.
//!
//! The functions make the types of `sample`. `sampler` takes a sample once a second. `rules`,
//! `permits` and `backing_off` are the rules of the headline, `metrics` the metrics.

pub(crate) mod backing_off;
pub(crate) mod metrics;
pub(crate) mod permits;
pub(crate) mod rules;
pub(crate) mod sample;
pub(crate) mod sampler;

use std::collections::BTreeMap;

use config::{self, BackoffMode};
use limit::{Class, Cut, Lowered, Moment, Rate, show_duration};

use self::sample::{ConfiguredAndEffective, RefusedOperation};
use super::{BlockedBy, BlockedTimes, GateOutage, GateStatus, KeyAtGate, PermitSharing};
use crate::http::gateway::Gateway;
use crate::observe::key_names::KeyNames;
use crate::observe::metrics::BackoffReason;
use crate::status::plain::Plain;
use crate::zone::StoreError;

/// Classes of a gate, each with its number of waiters.
pub(crate) fn classes(classes: &[(Class, usize)]) -> Vec<sample::GateClass> {
    let sample = |(class, depth): &(Class, usize)| sample::GateClass {
        class: Plain::new(&class.name),
        weight: class.weight,
        queue_depth: *depth as u64,
    };
    classes.iter().map(sample).collect()
}

/// Configured and effective rate, each converted by `show`.
pub(crate) fn rate<T>(
    origin: &config::Origin,
    status: &GateStatus,
    show: impl Fn(Rate) -> T,
) -> ConfiguredAndEffective<T> {
    ConfiguredAndEffective {
        file: origin.rate.map(&show),
        now: status.rate.map(&show),
    }
}

/// Configured and effective maximum of requests in flight.
pub(crate) fn max_in_flight(
    origin: &config::Origin,
    status: &GateStatus,
) -> ConfiguredAndEffective<u64> {
    ConfiguredAndEffective {
        file: origin.permits().map(|most| most.get() as u64),
        now: status.max_in_flight.map(|most| most as u64),
    }
}

/// Status of the permits that gateways share at an origin.
pub(crate) fn permits_status(
    origin: &config::Origin,
    sharing: &PermitSharing,
) -> sample::PermitsStatus {
    let why = sharing.why_out.as_ref().filter(|_| sharing.is_out);
    let pool = sharing.pool.unwrap_or_default();
    let (withheld, unknown) = pool.withheld_and_unknown();
    sample::PermitsStatus {
        of: pool.of as u64,
        held: sharing.held as u64,
        in_use: sharing.in_use as u64,
        leased: pool.held as u64,
        withheld: withheld as u64,
        unknown: unknown as u64,
        orphan: Plain::new(&show_duration(origin.orphan)),
        free: pool.free as u64,
        gateways: pool.gateways.into(),
        alone: sharing.is_out,
        reason: why.map(|it| Plain::new(&it.to_string())),
        remedy: why.map(|it| Plain::new(it.remedy())),
    }
}

/// Operation that the store refuses a gate; the most costly refusal first.
pub(crate) fn refused(origin: &config::Origin, status: &GateStatus) -> Option<sample::GateRefused> {
    // `part`: share of the gate in the rate or the permits, without the store.
    let refused = |operation, part, why: Option<&StoreError>| {
        // Without an answer, the store is out and has refused nothing.
        let why = why.filter(|why| why.is_answer())?;
        Some(sample::GateRefused {
            operation,
            part,
            reason: Plain::new(&why.to_string()),
            remedy: why.remedy().into(),
        })
    };
    let slots = status.sharing.as_ref().and_then(|sharing| {
        let why = sharing.why_alone.as_ref();
        refused(RefusedOperation::Slots, sharing.part, why)
    });
    let permits = status.permits.as_ref().and_then(|sharing| {
        let most = origin.shared_permits()?.get();
        let part = sharing.alone.unwrap_or(0) as f64 / most as f64;
        let why = sharing.why_out.as_ref().filter(|_| sharing.is_out);
        refused(RefusedOperation::Permits, part, why)
    });
    let why = status.why_backs_off_alone.as_ref();
    let backoff = refused(RefusedOperation::Backoff, 1.0, why);
    // A gate that starts no request costs most, then one with a part of the rate or the permits.
    let starts_nothing = permits.as_ref().is_some_and(|it| it.part == 0.0);
    let first = if starts_nothing {
        permits
    } else {
        slots.or(permits)
    };
    first.or(backoff)
}

/// Name of an origin's gate in the log and in the history of changes.
pub(crate) fn subject(origin: &str) -> String {
    format!("origins.{origin}")
}

/// Name of a key at a gate.
///
/// All requests without a key at the gate share the empty name.
pub(crate) fn key_name(gateway: &Gateway, key: &KeyAtGate) -> Plain {
    if key.key.is_empty() {
        return Plain::default();
    }
    let names = match (zone_of(gateway, key), &key.zone) {
        (None, Some(zone)) => KeyNames::of_former_zone(zone),
        (zone, _) => KeyNames::at_gate(zone),
    };
    Plain::new(&names.short(&key.key))
}

/// Plan of a key at a gate.
pub(crate) fn plan(gateway: &Gateway, key: &KeyAtGate) -> Option<Plain> {
    let zone = zone_of(gateway, key)?;
    zone.plans.name_of(&key.key).map(Plain::new)
}

/// Zone of a key at a gate; `None` without a zone, or if the zone was removed from the file.
fn zone_of<'g>(gateway: &'g Gateway, key: &KeyAtGate) -> Option<&'g config::Zone> {
    let name = key.zone.as_deref()?;
    let mut zones = gateway.zones().iter().map(|zone| zone.settings());
    zones.find(|zone| zone.name == name)
}

/// Time during which any request waited, in seconds, by cause.
pub(crate) fn blocked_seconds(times: &BlockedTimes) -> BTreeMap<Plain, f64> {
    let causes = BlockedBy::ALL.into_iter().zip(times);
    let seconds = causes.map(|(by, time)| (by.label().into(), time.as_secs_f64()));
    seconds.collect()
}

/// Present outage of an origin.
pub(crate) fn outage(
    origin: &config::Origin,
    outage: Option<&GateOutage>,
    now: Moment,
) -> Option<sample::GateOutage> {
    outage.map(|outage| sample::GateOutage {
        lasts: now.since(outage.since).as_secs_f64(),
        hold: Plain::new(&show_duration(origin.hold)),
        error: Plain::new(&outage.error.to_string()),
    })
}

/// Reason why a gate lets less through than configured; `None` if it does not.
///
/// Of several reasons, the one that slows requests down most: a pause, then the rate, then the
/// permits.
pub(crate) fn backing_off(
    origin: &config::Origin,
    lowered: &Lowered,
    now: Moment,
) -> Option<sample::BackingOff> {
    let settings = origin.backoff.as_ref()?;
    let pause = lowered.paused_until.filter(|until| *until > now);
    let pause = pause.map(|until| {
        let left = until.since(now).as_secs_f64();
        let source = if lowered.is_paused_elsewhere {
            ", as the origin told another gateway"
        } else {
            ""
        };
        let text = format!("no request leaves for {left:.1} s{source}");
        (BackoffReason::RetryAfter, text)
    });
    // Text for a cut: how many of the last answers were bad, and in which way.
    let describe_cut = |reason, cut: &Cut, what| {
        let Cut { bad, answers, .. } = *cut;
        let elsewhere = if cut.is_elsewhere {
            " to another gateway"
        } else {
            ""
        };
        let text = format!("{bad} of {answers} answers{elsewhere} were {what}");
        (reason, text)
    };
    let rate = lowered.rate.as_ref();
    let rate = rate.map(|(_, cut)| describe_cut(BackoffReason::Trouble, cut, "trouble"));
    let permits = lowered.max_in_flight.as_ref();
    let permits = permits.map(|cut| describe_cut(BackoffReason::Slow, cut, "slow"));
    let text = "fewer at once did not make it faster".to_owned();
    let in_vain = lowered.is_kept.then_some((BackoffReason::Slow, text));
    let is_lower = pause.is_some() || rate.is_some() || permits.is_some();
    let reasons = [pause, rate, permits, in_vain].into_iter().flatten();
    let reasons: Vec<_> = reasons.collect();
    let texts: Vec<_> = reasons.iter().map(|(_, text)| text.as_str()).collect();
    Some(sample::BackingOff {
        reason: reasons.first()?.0.label().into(),
        text: Plain::new(&texts.join("; ")),
        shadow: settings.mode == BackoffMode::Shadow,
        kept: !is_lower,
        in_vain: lowered.is_kept,
        grows: lowered.grows,
        usual: lowered.usual.map(|usual| usual.as_secs_f64()),
    })
}
