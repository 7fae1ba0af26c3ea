use std::collections::HashMap;
use std::time::Duration;

use super::gate::{Gates, grown};
use super::lefts::Lefts;
use crate::admin::counts::{self, Labelled};
use crate::admin::minute::{Of, latency};
use crate::admin::views::{Codes, OriginSample, Plain};
use crate::http::gateway::Gateway;
use crate::http::upstream::{Condition, Origin};
use crate::limit::Moment;
use crate::observe::metrics::Counts;
use crate::time::clock;

/// How long a failure is told of.
const RECENT: Duration = Duration::from_secs(60);

/// The counts of each server one second ago, and those of the gates.
#[derive(Default)]
pub(super) struct Origins {
    before: HashMap<Of, Counted>,
    now: HashMap<Of, Counted>,
    gates: Gates,
    /// Clients that left before each origin answered, until one second ago.
    lefts: HashMap<String, Counts>,
}

/// The counts of a server.
#[derive(Clone, Default)]
struct Counted {
    codes: Codes,
    errors: Labelled,
    latencies: Counts,
}

impl Origins {
    /// All origins in the last second.
    pub(super) fn sample(&mut self, gateway: &Gateway) -> Vec<OriginSample> {
        let now = clock::now();
        self.gates.begin();
        self.before = std::mem::take(&mut self.now);
        let origins = gateway.origins().iter();
        let samples = origins.map(|it| self.origin(gateway, it, now)).collect();
        let lefts = gateway.origins().iter();
        let lefts = lefts.map(|it| (it.settings().name.clone(), it.lefts()));
        self.lefts = lefts.collect();
        samples
    }

    fn origin(&mut self, gateway: &Gateway, origin: &Origin, now: Moment) -> OriginSample {
        let settings = origin.settings();
        let gate = origin.gate();
        let lefts = self.lefts.get(&settings.name).cloned();
        let lefts = origin.lefts().since(&lefts.unwrap_or_default());
        let Lefts { left, left_after } = Lefts::of(&lefts);
        let mut sample = OriginSample {
            name: Plain::new(&settings.name),
            max_in_flight: settings.max_in_flight.map(|most| most.get() as u64),
            gate: gate.map(|gate| self.gates.sample(gateway, origin, gate)),
            left,
            left_after,
            ..OriginSample::default()
        };
        let mut latencies = Counts::default();
        let mut last_failure = None;
        for server in origin.servers(now) {
            sample.servers += 1;
            sample.in_flight += server.in_flight as u64;
            sample.answered += server.metrics.answered();
            sample.failed += server.metrics.failed();
            match server.condition {
                Condition::Asked => sample.healthy += 1,
                Condition::Failing => {
                    sample.healthy += 1;
                    sample.failing += 1;
                }
                Condition::Out(_) => {}
            }
            let recent = server.last_failure;
            let recent = recent.filter(|failure| now.since(failure.at) < RECENT);
            last_failure = last_failure
                .into_iter()
                .chain(recent)
                .max_by_key(|it| it.at);
            let seen = self.count(
                Of::server(&settings.name, server.url),
                Counted {
                    codes: counts::responses(server.metrics),
                    errors: counts::errors(server.metrics),
                    latencies: server.metrics.latencies(),
                },
            );
            counts::add(&mut sample.codes, &seen.codes);
            counts::add(&mut sample.errors, &seen.errors);
            latencies.add(&seen.latencies);
        }
        sample.latency = latency(&latencies);
        sample.last_failure = last_failure.map(|failure| Plain::new(&failure.text));
        sample
    }

    /// What was counted in the last second, if `now` is what was counted so far.
    fn count(&mut self, of: Of, now: Counted) -> Counted {
        let past = self.before.remove(&of).unwrap_or_default();
        let seen = Counted {
            codes: grown(&now.codes, &past.codes),
            errors: grown(&now.errors, &past.errors),
            latencies: now.latencies.since(&past.latencies),
        };
        self.now.insert(of, now);
        seen
    }
}
