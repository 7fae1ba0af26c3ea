//! Metrics of shared responses.

use super::answers;
use crate::http::gateway::Gateway;
use crate::status::exposition::table::{Table, labels};

/// Writes the metrics of collapsed requests; nothing if no route collapses.
pub(crate) fn write(out: &mut String, gateway: &Gateway) {
    let origins = gateway.origins().iter().enumerate();
    let origins = origins.filter_map(|(index, origin)| {
        let name = labels(&[("origin", &origin.settings().name)]);
        Some((name, gateway.collapse_metrics(index)?))
    });
    let mut table = Table::new(out, origins);
    table.counts("drip_shared_requests_total", "outcome", |it| &it.requests);
    table.value("drip_shared_waiting", |it| it.waiting.get());
    table.durations("drip_shared_wait_seconds", |it| &it.waits.histogram);
    let Some(shared) = answers(gateway) else {
        return;
    };
    let mut table = Table::of_process(out);
    table.value("drip_shared_answers", |()| shared.answers);
    table.value("drip_shared_answers_bytes", |()| shared.bytes);
    table.value("drip_shared_answers_max_bytes", |()| shared.max_bytes);
    table.value("drip_shared_evictions_total", |()| shared.evicted);
}
