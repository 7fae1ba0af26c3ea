//! Takes the samples of origins: the facts of the last second about each, with servers and gate.
//!
//! `sample` has the types. `rules` and `hanging` are the rules of the headline, `unanswered` what
//! they need of the last minutes. `metrics` are the metrics.

pub(crate) mod hanging;
pub(crate) mod metrics;
pub(crate) mod rules;
pub(crate) mod sample;
pub(crate) mod unanswered;

use std::collections::HashMap;
use std::time::Duration;

use limit::Moment;

use self::sample::{FailureSample, OriginSample};
use self::unanswered::Past;
use super::{Availability, Origin, Server};
use crate::collapse::report::sample::SharedAnswers;
use crate::collapse::report::sampler::Shared;
use crate::gate::report::sampler::Gates;
use crate::http::gateway::Gateway;
use crate::observe::metrics::Counts;
use crate::room::report::sampler::Rooms;
use crate::status::counts::{self, Labelled};
use crate::status::disconnects::Disconnects;
use crate::status::growth::Before;
use crate::status::minute::{LatencySource, latency};
use crate::status::plain::Plain;
use crate::time::clock;

/// Duration for which a failure is shown.
const FAILURE_SHOWN: Duration = Duration::from_secs(60);

/// State of one second ago: counts of servers, gates, waiting rooms, and shared responses.
#[derive(Default)]
pub(crate) struct Origins {
    /// Responses, errors and latencies of each server.
    servers: Before<LatencySource, (Labelled, Labelled, Counts)>,
    gates: Gates,
    rooms: Rooms,
    shared: Shared,
    /// Clients that disconnected before the origin responded, by origin.
    disconnects: Before<String, Counts>,
    /// Values of the last ten minutes at each origin.
    past: HashMap<String, Past>,
}

impl Origins {
    /// Takes the samples of all origins for the last second.
    pub(crate) fn sample(&mut self, gateway: &Gateway) -> Vec<OriginSample> {
        let now = clock::now();
        self.gates.begin();
        self.rooms.begin();
        self.shared.begin();
        self.servers.begin();
        self.disconnects.begin();
        let in_file = &gateway.settings().origins;
        let is_in_file = |name: &str| in_file.iter().any(|it| it.name == name);
        if self.past.len() > in_file.len() {
            self.past.retain(|name, _| is_in_file(name));
        }
        let origins = gateway.origins().iter().enumerate();
        let sample = |(index, origin): (usize, &Origin)| OriginSample {
            room: gateway
                .room(index)
                .zip(origin.settings().room.as_ref())
                .map(|(room, file)| self.rooms.sample(room, file, now)),
            shared: gateway
                .collapse_metrics(index)
                .map(|it| self.shared.sample(&origin.settings().name, it)),
            ..self.sample_origin(gateway, origin, now)
        };
        origins.map(sample).collect()
    }

    /// Takes the sample of the responses that requests of all routes share.
    pub(crate) fn shared_answers(&mut self, gateway: &Gateway) -> Option<SharedAnswers> {
        self.shared.answers(gateway)
    }

    /// Takes the sample of an origin for the last second, without its room and shared responses.
    fn sample_origin(&mut self, gateway: &Gateway, origin: &Origin, now: Moment) -> OriginSample {
        let settings = origin.settings();
        let gate = origin.gate();
        let name = settings.name.clone();
        let disconnects = self.disconnects.since(name, origin.disconnects());
        let Disconnects { left, left_after } = Disconnects::of(&disconnects);
        let mut sample = OriginSample {
            name: Plain::new(&settings.name),
            max_in_flight: settings.max_in_flight.map(|most| most.get() as u64),
            gate: gate.map(|gate| self.gates.sample(gateway, origin, gate)),
            left,
            left_after,
            client_cert: settings.tls.own_validity(),
            ..OriginSample::default()
        };
        let past = self.past.entry(settings.name.clone()).or_default();
        let mut requests = past.begin(settings.response_timeout);
        let mut latencies = Counts::default();
        for server in origin.servers() {
            sample.servers += 1;
            sample.in_flight += server.in_flight.count() as u64;
            requests.add_server(&server.in_flight, now);
            sample.answered += server.metrics.answered();
            sample.failed += server.metrics.failed();
            match server.availability(now) {
                Availability::InUse => sample.healthy += 1,
                Availability::Failing => {
                    sample.healthy += 1;
                    sample.failing += 1;
                }
                Availability::Out(..) => {}
            }
            let totals = (
                counts::responses(&server.metrics),
                counts::errors(&server.metrics),
                server.metrics.latencies(),
            );
            let source = LatencySource::server(&settings.name, server.url());
            let (codes, errors, more) = self.servers.since(source, totals);
            counts::add(&mut sample.codes, &codes);
            counts::add(&mut sample.errors, &errors);
            latencies.add(&more);
        }
        sample.latency = latency(&latencies);
        let expiries = origin.servers().filter_map(Server::certificate_expires);
        sample.certificate_expires = expiries.min();
        // The latest failure of any server, with the URL of the server.
        let failures = origin.servers();
        let failures = failures.filter_map(|it| Some((it.url(), it.last_failure()?)));
        let recent = failures.filter(|(_, failure)| now.since(failure.at) < FAILURE_SHOWN);
        if let Some((url, failure)) = recent.max_by_key(|(_, failure)| failure.at) {
            sample.last_failure = Some(Plain::new(&failure.text));
            sample.failure = Some(FailureSample {
                server: Plain::new(&url.to_string()),
                kind: failure.kind,
                lasts: now.since(failure.since).as_secs_f64(),
                is_held: settings.holds(),
            });
        }
        past.add_to(&requests, gateway, origin, &mut sample, now);
        sample
    }
}
