use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use limit::{Algorithm, Demand, GridAnswer, Moment, Rate};

use super::store_key::StoreKey;
use super::store_task::StoreTask;
use crate::observe::metrics::{CountBy, StoreResult};
use crate::store::{Claim, GRID_FORM, Pace, StoreClock};
use crate::zone::{StoreRefusal, store_result};

/// What the log says of a refusal.
const REFUSED: &str = "gate, which goes on alone with its part of the rate";

/// A claim of slots, and what the store is told with it.
pub(super) struct SlotClaim {
    pub(super) demand: Demand,
    /// Which part of its turns the gate may take.
    pub(super) part: f64,
    /// That of this gateway's file, and since when.
    pub(super) rate: (Rate, Moment),
}

/// A gate's way to the grid that gateways share before its origin.
///
/// One task of one worker has it, and uses the link of that worker.
pub(super) struct GridLink {
    /// The grid.
    pub(super) key: StoreKey,
    clock: Rc<StoreClock>,
    /// How long answers to claims take to arrive, most of them; zero before the first one.
    lead: Duration,
    claims: Arc<CountBy<StoreResult>>,
}

impl GridLink {
    /// The way of a task, from its thread. Does not connect.
    pub(super) fn new(task: &StoreTask) -> Self {
        let key = StoreKey::new(task, "gate", GRID_FORM);
        Self {
            clock: key.link.clock(),
            key,
            lead: Duration::ZERO,
            claims: task.claims(),
        }
    }

    /// Claims slots, and tells what waits.
    ///
    /// # Errors
    ///
    /// Returns an error if the store granted nothing in time. Then another claim may be, or the
    /// gate goes on alone until the store is back.
    pub(super) async fn claim(&mut self, claim: &SlotClaim) -> Result<GridAnswer, StoreRefusal> {
        let SlotClaim { demand, part, rate } = claim;
        self.key.begin();
        let pace = Pace::new(rate.0, Algorithm::LeakyBucket, rate.1);
        // The file is refused with such a rate.
        let pace = pace.map_err(|error| StoreRefusal {
            is_answer: false,
            reason: error.to_string(),
            remedy: "",
        })?;
        let claim = Claim {
            grid: &self.key.name,
            gateway: self.key.gateway,
            pace: &pace,
            slots: demand.slots,
            part: *part,
            lead: self.lead,
            classes: &demand.classes,
            keys: Some(&demand.keys),
            at: None,
        };
        let (granted, trip) = self.key.link.run(self.key.link.store().claim(&claim)).await;
        self.claims.add(store_result(granted.as_ref().err()), 1);
        let granted = granted.map_err(|error| self.key.note(&error, REFUSED))?;
        self.clock.note(trip, granted.now);
        let own = |told: Moment| self.clock.own(told);
        // Up at once, and down slowly: an answer that takes longer brings slots that have passed.
        let took = trip.received.since(own(granted.now));
        self.lead = took.max((self.lead * 7 + took) / 8);
        let named = demand.classes.iter().map(|it| it.class);
        Ok(GridAnswer {
            gateways: granted.gateways,
            part: granted.part,
            rate: granted.rate,
            free: own(granted.free),
            again: own(granted.again),
            classes: named.zip(granted.classes).collect(),
            keys: granted.keys,
            slots: granted.slots.iter().map(|slot| own(*slot)).collect(),
        })
    }
}
