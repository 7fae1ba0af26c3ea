//! Rules of the headline for a store that is out, or refuses operations of zones and gates.
//!
//! The *store* is Redis. A rule reads the samples of the last seconds, and returns a finding if
//! something is wrong: what, the evidence, and the remedy. The store is *out* if it cannot be
//! reached or accepts no writes.

use crate::gate::report::sample::RefusedOperation;
use crate::origin::report::sample::OriginSample;
use crate::status::headline::finding::{Cause, Finding, Severity};
use crate::status::headline::recent::Recent;
use crate::status::headline::words::{count, listed, part, seconds, sentence, whole};
use crate::status::plain::Plain;
use crate::status::sample::Sample;

/// Results of operations that did not fail.
const SUCCESSES: [&str; 2] = ["ok", "leased"];

/// Rule: the store is out.
pub(crate) fn store_out(recent: &Recent<'_>, now: &Sample) -> Option<Finding> {
    let store = now.store.as_ref().filter(|store| !store.up)?;
    let out_for = store.out_for.unwrap_or_default();
    let operations = recent.operations();
    let failed: Vec<_> = operations
        .iter()
        .filter(|(result, count)| !SUCCESSES.contains(&result.as_str()) && **count > 0)
        .map(|(result, count)| format!("{} {result}", whole(*count)))
        .collect();
    let reason = store.reason.as_ref().map_or("no answer", Plain::as_str);
    let meanwhile = store.meanwhile.as_ref();
    let meanwhile = meanwhile.map_or(String::new(), |effect| format!(" Meanwhile, {effect}."));
    let failed = if failed.is_empty() {
        String::new()
    } else {
        let seconds = recent.seconds();
        format!(
            " In the last {seconds:.0} s: {} operations.",
            listed(&failed)
        )
    };
    Some(Finding {
        weight: out_for,
        title: format!("The store is out for {}", seconds(out_for)),
        evidence: format!("{reason}.{failed}{meanwhile}"),
        remedy:
            "Bring Redis or the way to it back, or let it take writes; see Store. Gateways do not share a rate until then."
                .to_owned(),
        ..Finding::new(Cause::StoreOut, Severity::Bad)
    })
}

/// Rule: the store is up and refuses operations of zones.
pub(crate) fn store_refuses(recent: &Recent<'_>, now: &Sample) -> Option<Finding> {
    let store = now.store.as_ref().filter(|store| store.up)?;
    let refusal = store.refuses.as_ref()?;
    let names: Vec<_> = refusal.zones.iter().map(Plain::to_string).collect();
    let operations = recent.operations();
    let refused = operations.get(&Plain::from("refused"));
    let refused = refused.copied().unwrap_or_default();
    Some(Finding {
        weight: part(refused, 1),
        about: refusal.zones.first().filter(|_| names.len() == 1).cloned(),
        title: format!("Redis refuses all requests of {}", listed(&names)),
        evidence: format!(
            "{} refused in the last {:.0} s: {}. Meanwhile, zones follow their on_store_failure.",
            count(refused, "operation"),
            recent.seconds(),
            refusal.reason
        ),
        remedy: sentence(refusal.remedy.as_str()),
        ..Finding::new(Cause::StoreRefuses, Severity::Bad)
    })
}

/// Rule: the store is up and refuses operations of a gate.
pub(crate) fn refused_gate(recent: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let refused = origin.gate.as_ref()?.refused.as_ref()?;
    // During an outage, the rule for the outage says what gates do.
    let store = recent.last()?.store.as_ref();
    store.filter(|store| store.up)?;
    let name = &origin.name;
    // Text for the part of the rate or of the permits that the gate uses alone.
    let own_part_of = |what: &str| match (1.0 / refused.part).round() {
        parts if parts > 1.0 => format!("1/{parts} of its {what}"),
        _ => format!("all of its {what}"),
    };
    let (effect, severity, consequence) = match refused.operation {
        RefusedOperation::Slots => (
            format!(
                "goes on alone with {}: Redis refused its claims",
                own_part_of("rate")
            ),
            Severity::Bad,
            "Other gateways do not know what this one sends",
        ),
        RefusedOperation::Permits if refused.part == 0.0 => (
            "starts nothing: Redis refused to lease it permits".to_owned(),
            Severity::Bad,
            "Other gateways do not know which requests of this one still run",
        ),
        RefusedOperation::Permits => (
            format!(
                "goes on alone with {}: Redis refused to lease it any",
                own_part_of("permits")
            ),
            Severity::Bad,
            "Other gateways do not know which requests of this one run",
        ),
        RefusedOperation::Backoff => (
            "backs off alone: Redis refused to tell what other gateways have learned".to_owned(),
            Severity::Warn,
            "A cut or a pause here is none there, nor the reverse",
        ),
    };
    Some(Finding {
        title: format!("The gate of {name} {effect}"),
        evidence: format!(
            "{}. {consequence}.",
            refused.reason.as_str().trim_end_matches('.')
        ),
        remedy: sentence(refused.remedy.as_str()),
        ..Finding::about(name, Cause::StoreRefuses, severity)
    })
}
