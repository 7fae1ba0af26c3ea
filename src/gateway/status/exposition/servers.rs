//! The metrics of the servers of origins.

use super::table::{Table, labels};
use crate::http::gateway::Gateway;
use crate::observe::metrics::Outcome;
use crate::time::clock;

pub(super) fn write(out: &mut String, gateway: &Gateway) {
    let now = clock::now();
    let servers = gateway.origins().iter().flat_map(|origin| {
        let name = &origin.settings().name;
        let servers = origin.servers(now);
        servers.map(move |it| {
            let url = it.url.to_string();
            (labels(&[("origin", name), ("server", &url)]), it)
        })
    });
    let mut table = Table::new(out, servers);
    table.write("drip_origin_requests_total", |server, series| {
        let all = Outcome::ALL.map(|it| (it.label(), server.metrics.counted(it)));
        series.each("outcome", all);
    });
    table.write("drip_origin_responses_total", |server, series| {
        series.counts("code", &server.metrics.responses);
    });
    table.write("drip_origin_response_seconds", |server, series| {
        for outcome in Outcome::ALL {
            let more = labels(&[("outcome", outcome.label())]);
            series.durations(&more, server.metrics.durations(outcome));
        }
    });
    table.write("drip_origin_in_flight", |server, series| {
        series.add(server.in_flight);
    });
    table.write("drip_origin_oldest_request_seconds", |server, series| {
        let since = server.requests.oldest_unanswered();
        series.add(since.map_or(0.0, |since| now.since(since).as_secs_f64()));
    });
    table.write("drip_origin_healthy", |server, series| {
        series.add(u8::from(server.is_healthy));
    });
}
