//! Sample of the store.

pub(crate) mod metrics;
pub(crate) mod rules;
pub(crate) mod sample;

use std::collections::HashMap;
use std::time::Duration;

use limit::Moment;

use self::sample::{StoreRefuses, StoreSample};
use crate::http::gateway::Gateway;
use crate::observe::metrics::{Counts, StoreResult};
use crate::status::counts::{self, Labelled};
use crate::status::growth::Growing;
use crate::status::minute::latency;
use crate::status::plain::Plain;
use crate::status::timestamp::seconds;
use crate::time::clock;

/// Duration for which a zone without traffic is shown as refused.
const SHOWN: Duration = Duration::from_secs(10);

/// Counts of the store one second ago.
#[derive(Default)]
pub(crate) struct Store {
    before: (Labelled, Counts),
    zones: HashMap<String, ZoneOperations>,
}

/// Operations of a zone until one second ago.
#[derive(Default)]
struct ZoneOperations {
    counts: Labelled,
    /// Instant of the last refusal, if no operation was done since.
    refused: Option<Moment>,
}

impl ZoneOperations {
    /// Computes the state after a second from the state before.
    fn next(before: Option<Self>, counts: Labelled, now: Moment) -> Self {
        let before = before.unwrap_or_default();
        let grown = counts.since(&before.counts);
        let has = |result: StoreResult| grown.contains_key(&Plain::from(result.label()));
        let refused = if has(StoreResult::Ok) || has(StoreResult::Leased) {
            None
        } else if has(StoreResult::Refused) {
            Some(now)
        } else {
            before.refused
        };
        let refused = refused.filter(|at| now.since(*at) < SHOWN);
        Self { counts, refused }
    }
}

impl Store {
    /// Sample of the store for the last second; `None` if nothing is shared.
    pub(crate) fn sample(&mut self, gateway: &Gateway) -> Option<StoreSample> {
        let store = gateway.store_health()?;
        let mut now = (Labelled::new(), store.round_trips().counts());
        let mut before = std::mem::take(&mut self.zones);
        let at = clock::now();
        let zones = gateway.zones().iter();
        for zone in zones.clone() {
            let operations = counts::operations(zone.metrics());
            counts::add(&mut now.0, &operations);
            let name = &zone.settings().name;
            let before = before.remove(name);
            let next = ZoneOperations::next(before, operations, at);
            self.zones.insert(name.clone(), next);
        }
        let is_refused =
            |name: &String| self.zones.get(name).is_some_and(|it| it.refused.is_some());
        let names = zones.clone().map(|zone| &zone.settings().name);
        let names = names.filter(|name| is_refused(name));
        let names: Vec<_> = names.map(|name| Plain::new(name)).collect();
        let refusal = store.last_refusal().filter(|_| !names.is_empty());
        let differs = zones.filter(|zone| zone.differs());
        let outage = store.outage();
        let (operations, latencies) = now.since(&self.before);
        self.before = now;
        Some(StoreSample {
            up: outage.is_none(),
            out_for: outage
                .as_ref()
                .map(|(since, _)| seconds(clock::now().since(*since))),
            meanwhile: outage
                .as_ref()
                .map(|_| store.during_outage().as_str().into()),
            reason: outage.map(|(_, reason)| Plain::new(&reason)),
            latency: latency(&latencies),
            operations,
            refuses: refusal.map(|why| StoreRefuses {
                zones: names,
                reason: Plain::new(&why.reason),
                remedy: why.remedy.into(),
            }),
            differs: differs.map(|it| Plain::new(&it.settings().name)).collect(),
        })
    }
}
