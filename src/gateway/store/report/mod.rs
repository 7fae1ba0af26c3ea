//! Takes the sample of the store, Redis, once a second: operations and refusals of zones, outages.
//!
//! `sample` has the types, `rules` the rules of the headline, `metrics` the metrics.

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
const REFUSAL_SHOWN: Duration = Duration::from_secs(10);

/// Counts of the store one second ago.
#[derive(Default)]
pub(crate) struct Store {
    /// Operations of all zones by result, and durations of round trips.
    before: (Labelled, Counts),
    zones: HashMap<String, ZoneOperations>,
}

/// Operations of a zone until the last sample.
#[derive(Default)]
struct ZoneOperations {
    /// Number of operations, by result.
    counts: Labelled,
    /// Instant of the last refusal, if no operation was done since.
    refused: Option<Moment>,
}

impl ZoneOperations {
    /// Computes the state of a zone at this second from that of the second before.
    fn next(before: Option<Self>, counts: Labelled, now: Moment) -> Self {
        let before = before.unwrap_or_default();
        let grown = counts.since(&before.counts);
        let has_result = |result: StoreResult| grown.contains_key(&Plain::from(result.label()));
        let refused = if has_result(StoreResult::Ok) || has_result(StoreResult::Leased) {
            None
        } else if has_result(StoreResult::Refused) {
            Some(now)
        } else {
            before.refused
        };
        let refused = refused.filter(|at| now.since(*at) < REFUSAL_SHOWN);
        Self { counts, refused }
    }
}

impl Store {
    /// Returns the sample of the store for the last second; `None` if nothing is shared.
    pub(crate) fn sample(&mut self, gateway: &Gateway) -> Option<StoreSample> {
        let store = gateway.store_health()?;
        let now = clock::now();
        let mut counts = (Labelled::new(), store.round_trips().counts());
        let mut before = std::mem::take(&mut self.zones);
        let (mut refused_zones, mut differing_zones) = (Vec::new(), Vec::new());
        for zone in gateway.zones() {
            let operations = counts::operations(zone.metrics());
            counts::add(&mut counts.0, &operations);
            let name = &zone.settings().name;
            let next = ZoneOperations::next(before.remove(name), operations, now);
            if next.refused.is_some() {
                refused_zones.push(Plain::new(name));
            }
            if zone.differs() {
                differing_zones.push(Plain::new(name));
            }
            self.zones.insert(name.clone(), next);
        }
        let refusal = store.last_refusal().filter(|_| !refused_zones.is_empty());
        let (operations, latencies) = counts.since(&self.before);
        self.before = counts;
        let (since, reason) = store.outage().unzip();
        Some(StoreSample {
            up: since.is_none(),
            out_for: since.map(|since| seconds(now.since(since))),
            meanwhile: since.map(|_| store.during_outage().as_str().into()),
            reason: reason.map(|reason| Plain::new(&reason)),
            latency: latency(&latencies),
            operations,
            refuses: refusal.map(|refusal| StoreRefuses {
                zones: refused_zones,
                reason: Plain::new(&refusal.to_string()),
                remedy: refusal.remedy().into(),
            }),
            differs: differing_zones,
        })
    }
}
