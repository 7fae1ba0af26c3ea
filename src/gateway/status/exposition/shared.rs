//! The metrics of shared answers that are collected when Prometheus asks.

use super::Family;
use crate::http::gateway::Gateway;
use crate::status::shared::answers;

pub(super) fn write(out: &mut String, gateway: &Gateway) {
    let Some(shared) = answers(gateway) else {
        return;
    };
    let gauges = [
        (
            "drip_shared_answers",
            "Answers that are kept for requests that come later.",
            shared.answers,
        ),
        (
            "drip_shared_answers_bytes",
            "What all shared answers take, also those that are still being read or gathered.",
            shared.bytes,
        ),
        (
            "drip_shared_answers_max_bytes",
            "What shared answers may take.",
            shared.max_bytes,
        ),
    ];
    let gauges = gauges.map(|(name, help, value)| (Family::gauge(name, help), value));
    let evictions = Family::counter(
        "drip_shared_evictions_total",
        "Shared answers that were forgotten early, or cut off from slow readers, because others needed their memory.",
    );
    for (mut family, value) in gauges.into_iter().chain([(evictions, shared.evicted)]) {
        family.add(&[], value);
        out.push_str(&family.text);
    }
}
