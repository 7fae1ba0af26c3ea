//! Metrics of the servers of origins, and of certificates, written when `/metrics` is read.
//!
//! `status/exposition/families.txt` has their types and help texts.

use crate::http::gateway::Gateway;
use crate::observe::certificates::{CertificateOf, known_certificates};
use crate::observe::metrics::Outcome;
use crate::origin::Server;
use crate::status::exposition::table::{Table, labels};
use crate::time::clock;

/// Writes the metrics of all servers.
pub(crate) fn write(out: &mut String, gateway: &Gateway) {
    let now = clock::now();
    let servers = gateway.origins().iter().flat_map(|origin| {
        let name = &origin.settings().name;
        origin.servers().map(move |it| {
            let url = it.url().to_string();
            (labels(&[("origin", name), ("server", &url)]), it)
        })
    });
    let mut table = Table::new(out, servers);
    table.each("drip_origin_requests_total", "outcome", |server| {
        Outcome::ALL.map(|it| (it.label(), server.metrics.counted(it)))
    });
    table.counts("drip_origin_responses_total", "code", |server| {
        &server.metrics.responses
    });
    table.write("drip_origin_response_seconds", |server, series| {
        for outcome in Outcome::ALL {
            let more = labels(&[("outcome", outcome.label())]);
            series.durations(&more, server.metrics.durations(outcome));
        }
    });
    table.value("drip_origin_in_flight", |server| server.in_flight.count());
    table.value("drip_origin_oldest_request_seconds", |server| {
        let since = server.in_flight.oldest_unanswered();
        since.map_or(0.0, |since| now.since(since).as_secs_f64())
    });
    table.value("drip_origin_healthy", |server| {
        u8::from(server.health.is_healthy(now))
    });
}

/// Writes the expiry of certificates; nothing if none is known.
pub(crate) fn write_certificates(out: &mut String, gateway: &Gateway) {
    let mut ends = Vec::new();
    let mut add = |of: CertificateOf, name: &str, at: i64| {
        ends.push((labels(&[("of", of.label()), ("name", name)]), at));
    };
    for it in known_certificates() {
        add(it.of, &it.name, it.validity.to);
    }
    for origin in gateway.origins() {
        let shown = origin.servers().filter_map(Server::certificate_expires);
        if let Some(first) = shown.min() {
            add(CertificateOf::Origin, &origin.settings().name, first);
        }
        if let Some(own) = origin.settings().tls.own_validity() {
            add(CertificateOf::ClientCert, &origin.settings().name, own.to);
        }
    }
    Table::new(out, ends).value("drip_certificate_expires_timestamp_seconds", |at| *at);
}
