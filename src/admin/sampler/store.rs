use super::gate::grown;
use super::seconds;
use crate::admin::counts::{self, Labelled};
use crate::admin::minute::latency;
use crate::admin::views::{Plain, StoreSample};
use crate::http::gateway::Gateway;
use crate::observe::metrics::Counts;
use crate::time::clock;

/// The counts of the store one second ago.
#[derive(Default)]
pub(super) struct Store {
    operations: Labelled,
    latencies: Counts,
}

impl Store {
    /// The store in the last second; `None` if nothing is shared.
    pub(super) fn sample(&mut self, gateway: &Gateway) -> Option<StoreSample> {
        let store = gateway.store_health()?;
        let mut now = Self {
            operations: Labelled::new(),
            latencies: store.latencies(),
        };
        let zones = gateway.zones().iter();
        for zone in zones.clone() {
            counts::add(&mut now.operations, &counts::operations(zone.metrics()));
        }
        let differs = zones.filter(|zone| zone.differs());
        let outage = store.outage();
        let sample = StoreSample {
            up: outage.is_none(),
            out_for: outage
                .as_ref()
                .map(|(since, _)| seconds(clock::now().since(*since))),
            meanwhile: outage
                .as_ref()
                .map(|_| store.shared_by().during_outage().into()),
            reason: outage.map(|(_, reason)| Plain::new(&reason)),
            latency: latency(&now.latencies.since(&self.latencies)),
            operations: grown(&now.operations, &self.operations),
            differs: differs.map(|it| Plain::new(&it.settings().name)).collect(),
        };
        *self = now;
        Some(sample)
    }
}
