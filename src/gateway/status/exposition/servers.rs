//! The metrics of the servers of origins, which are collected when Prometheus asks.

use metrics::{Key, Label};

use super::Family;
use crate::http::gateway::Gateway;
use crate::observe::metrics::{CodeClass, Outcome};
use crate::time::clock;

pub(super) fn write(out: &mut String, gateway: &Gateway) {
    let mut requests = Family::counter(
        "drip_origin_requests_total",
        "Requests sent to a server of an origin, by outcome.",
    );
    let mut responses = Family::counter(
        "drip_origin_responses_total",
        "Responses of a server of an origin, by class of their status.",
    );
    let mut durations = Family::new(
        "drip_origin_response_seconds",
        "From the last byte of a request to the response head, or to giving up.",
        "histogram",
    );
    let mut in_flight = Family::gauge(
        "drip_origin_in_flight",
        "Requests at the server: sent, and not yet answered to the last byte.",
    );
    let mut oldest = Family::gauge(
        "drip_origin_oldest_request_seconds",
        "How long ago the oldest request left that the server has whole and has not begun to answer; 0: there is none.",
    );
    let mut healthy = Family::gauge(
        "drip_origin_healthy",
        "1 while the server gets requests, 0 while it is out, after failures or by its health checks.",
    );
    let now = clock::now();
    for origin in gateway.origins() {
        for server in origin.servers(now) {
            let url = server.url.to_string();
            let [origin, of] = [("origin", &*origin.settings().name), ("server", &*url)];
            for outcome in Outcome::ALL {
                let labels = [origin, of, ("outcome", outcome.label())];
                requests.add(&labels, server.metrics.counted(outcome));
                let labels = labels.map(|(name, value)| Label::new(name, value.to_owned()));
                let key = Key::from_parts(durations.name, labels.to_vec());
                let histogram = server.metrics.durations(outcome);
                histogram.render(&key, &mut durations.text);
            }
            for code in CodeClass::ALL {
                let labels = [origin, of, ("code", code.label())];
                responses.add(&labels, server.metrics.responses(code));
            }
            in_flight.add(&[origin, of], server.in_flight);
            let since = server.requests.oldest_unanswered();
            let age = since.map_or(0.0, |since| now.since(since).as_secs_f64());
            oldest.add(&[origin, of], age);
            healthy.add(&[origin, of], u8::from(server.is_healthy));
        }
    }
    for family in [requests, responses, durations, in_flight, oldest, healthy] {
        out.push_str(&family.text);
    }
}
