//! Takes the sample of an origin's gate: its status, and its counts of the last second.

use std::collections::BTreeMap;

use limit::Rate;

use super::sample::{GateKeySample, GateSample};
use crate::gate::{OriginGate, report};
use crate::http::gateway::Gateway;
use crate::observe::metrics::Counts;
use crate::origin::Origin;
use crate::status::counts::{Labelled, counted};
use crate::status::disconnects::Disconnects;
use crate::status::growth::Before;
use crate::status::plain::Plain;
use crate::status::timestamp::seconds;
use crate::time::clock;

/// Number of the deepest keys of a gate in a sample.
const DEEPEST: usize = 5;

/// Counts of each gate one second ago, by its origin.
#[derive(Default)]
pub(crate) struct Gates(Before<String, Counted>);

/// Counts of a gate since it exists, whose growth in a second is in the sample.
///
/// Rejections and blocked seconds, each by reason; waits, and waits of disconnected clients.
type Counted = (Labelled, BTreeMap<Plain, f64>, Counts, Counts);

impl Gates {
    /// Begins a new second.
    pub(crate) fn begin(&mut self) {
        self.0.begin();
    }

    /// Takes the sample of an origin's gate for the last second.
    pub(crate) fn sample(
        &mut self,
        gateway: &Gateway,
        origin: &Origin,
        gate: &OriginGate,
    ) -> GateSample {
        let settings = origin.settings();
        let status = gate.status(DEEPEST);
        let now = (
            counted(gate.metrics().rejections.each()),
            report::blocked_seconds(&status.blocked),
            gate.metrics().waits.counts(),
            gate.metrics().disconnects.counts(),
        );
        let (rejected, blocked, waits, disconnects) = self.0.since(settings.name.clone(), now);
        let Disconnects { left, left_after } = Disconnects::of(&disconnects);
        let permits = status.permits.as_ref();
        let deepest = status.deepest.iter().map(|(key, depth)| GateKeySample {
            key: report::key_name(gateway, key),
            plan: report::plan(gateway, key),
            depth: *depth as u64,
        });
        GateSample {
            depth: status.depth as u64,
            departures: status.departures,
            rate: report::rate(settings, &status, Rate::per_second),
            costs: gateway.settings().has_costs(&settings.name),
            max_in_flight: report::max_in_flight(settings, &status),
            rejected,
            blocked,
            wait_p50: waits.quantile(0.5).map(seconds),
            wait_p99: waits.quantile(0.99).map(seconds),
            left,
            left_after,
            overridden: status.overridden.clone(),
            backing_off: report::backing_off(settings, &status.lowered, clock::now()),
            outage: report::outage(settings, status.outage.as_ref(), clock::now()),
            refused: report::refused(settings, &status),
            permits: permits.map(|it| report::permits_status(settings, it)),
            classes: report::classes(&status.classes),
            deepest: deepest.collect(),
            // With shares for keys, no network can crowd the others out.
            crowd: match settings.share {
                None => gate.events().networks.crowd(clock::now()),
                Some(_) => None,
            },
        }
    }
}
