//! Sample of an origin's gate.

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

/// Rejections and blocked seconds, each by reason; waits, and waits of disconnected clients.
type Counted = (Labelled, BTreeMap<Plain, f64>, Counts, Counts);

impl Gates {
    /// Begins a new second.
    pub(crate) fn begin(&mut self) {
        self.0.begin();
    }

    /// Sample of an origin's gate for the last second.
    pub(crate) fn sample(
        &mut self,
        gateway: &Gateway,
        origin: &Origin,
        gate: &OriginGate,
    ) -> GateSample {
        let settings = origin.settings();
        let state = gate.state(DEEPEST);
        let now = (
            counted(gate.metrics().rejections.each()),
            report::blocked_seconds(&state.blocked),
            gate.metrics().waits.counts(),
            gate.metrics().disconnects.counts(),
        );
        let (rejected, blocked, waits, disconnects) = self.0.since(settings.name.clone(), now);
        let Disconnects { left, left_after } = Disconnects::of(&disconnects);
        GateSample {
            depth: state.depth as u64,
            departures: state.departures,
            rate: report::rate(settings, &state, Rate::per_second),
            costs: gateway.settings().has_costs(&settings.name),
            max_in_flight: report::max_in_flight(settings, &state),
            rejected,
            blocked,
            wait_p50: waits.quantile(0.5).map(seconds),
            wait_p99: waits.quantile(0.99).map(seconds),
            left,
            left_after,
            overridden: state.overridden.clone(),
            backing_off: report::backing_off(settings, &state.lowered, clock::now()),
            outage: report::outage(settings, state.outage.as_ref(), clock::now()),
            refused: report::refused(settings, &state),
            permits: state
                .permits
                .as_ref()
                .map(|it| report::permits_status(settings, it)),
            classes: report::classes(&state.classes),
            deepest: state
                .deepest
                .iter()
                .map(|(key, depth)| GateKeySample {
                    key: report::key_name(gateway, key),
                    plan: report::plan(gateway, key),
                    depth: *depth as u64,
                })
                .collect(),
            crowd: match settings.share {
                None => gate.events().networks.crowd(clock::now()),
                Some(_) => None,
            },
        }
    }
}
