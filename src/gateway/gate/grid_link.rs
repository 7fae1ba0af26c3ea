//! Calls of the store that claim slots of a shared grid.
//!
//! The state of the gate's claims is in `claims`.

use std::rc::Rc;
use std::time::Duration;

use limit::{Algorithm, Demand, GridAnswer, Moment, Rate};

use super::store_key::StoreKey;
use super::store_task::StoreTask;
use crate::store::{Claim, GRID_FORM, StoreClock, StoreRate};
use crate::zone::StoreError;

/// End of the log line for a key that the store refuses.
const REFUSED: &str = "gate: this gateway goes on alone with its part of the rate";

/// Claim of slots, with what the store needs to know for it.
pub(super) struct SlotClaim {
    pub(super) demand: Demand,
    /// Part of its slots that the gate may take.
    pub(super) part: f64,
    /// Rate in this gateway's file, and the instant since which the file has it.
    pub(super) rate: (Rate, Moment),
}

/// Connection of one gate to the grid of slots that gateways share.
///
/// One task of one worker owns it, and uses that worker's link to the store.
pub(super) struct GridLink {
    /// Key of the grid in the store.
    pub(super) key: StoreKey,
    clock: Rc<StoreClock>,
    /// Time within which most answers to claims arrive; zero before the first one.
    lead: Duration,
}

impl GridLink {
    /// Creates it on the thread of the task. Does not connect yet.
    pub(super) fn new(task: &StoreTask) -> Self {
        let key = task.key("gate", GRID_FORM);
        Self {
            clock: key.link.clock(),
            key,
            lead: Duration::ZERO,
        }
    }

    /// Claims slots, and reports the waiting requests to the store.
    ///
    /// # Errors
    ///
    /// Returns an error if the store granted nothing in time. The caller may claim again, or let
    /// the gate use its own part alone until the store is back.
    pub(super) async fn claim(&mut self, claim: &SlotClaim) -> Result<GridAnswer, StoreError> {
        let SlotClaim { demand, part, rate } = claim;
        let pace = StoreRate::new(rate.0, Algorithm::LeakyBucket, rate.1);
        // Cannot fail for a valid configuration: such a rate is rejected when the file is read.
        let pace = pace.map_err(|error| StoreError::Refused(error.to_string()))?;
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
        let (granted, trip) = self.key.link.call(&claim).await;
        let granted = self.key.replied(granted, REFUSED)?;
        self.clock.note(trip, granted.now);
        let own = |store_time: Moment| self.clock.own(store_time);
        // Rises at once and falls slowly. With a lead that is too short, slots arrive after their
        // time.
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
