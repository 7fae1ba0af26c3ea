//! Calls of the store that claim slots of a shared grid.
//!
//! The parent module has the state of the gate's claims, and defines grid, slot and claim.

use std::rc::Rc;
use std::time::Duration;

use limit::{Algorithm, Demand, GridAnswer, Moment, Rate};

use super::super::store_key::StoreKey;
use crate::store::{Claim, StoreClock, StoreRate};
use crate::zone::StoreError;

/// End of the log line for a key that the store refuses.
const REFUSED: &str = "gate: this gateway goes on alone with its part of the rate";

/// Claim of slots for one gate.
///
/// The store also gets the lead of [`GridLink`].
pub(in crate::gate) struct SlotClaim {
    /// Slots that the gate needs, and the requests that wait there.
    pub(super) demand: Demand,
    /// Part of its slots that the gate may take.
    pub(super) part: f64,
    /// Rate in this gateway's file, and the instant since which the file has it.
    pub(super) rate: (Rate, Moment),
}

/// Link of one gate to the grid of slots that gateways share. One task of one worker owns it.
pub(in crate::gate) struct GridLink {
    clock: Rc<StoreClock>,
    /// *Lead*: time within which most answers to claims arrive; zero before the first one.
    ///
    /// The store grants no slot that comes sooner: the answer would be too late for it.
    lead: Duration,
}

impl GridLink {
    /// Creates the link to the grid of this key. Does not connect yet.
    pub(in crate::gate) fn new(key: &StoreKey) -> Self {
        Self {
            clock: key.link.clock(),
            lead: Duration::ZERO,
        }
    }

    /// Claims slots, and reports the waiting requests to the store.
    ///
    /// # Errors
    ///
    /// Returns an error if the store granted nothing in time. The caller may claim again, or let
    /// the gate use its own part alone until the store is back.
    pub(super) async fn claim(
        &mut self,
        key: &mut StoreKey,
        claim: &SlotClaim,
    ) -> Result<GridAnswer, StoreError> {
        let SlotClaim { demand, part, rate } = claim;
        let (rate, since) = *rate;
        let pace = StoreRate::new(rate, Algorithm::LeakyBucket, since);
        // Cannot fail for a valid configuration: such a rate is rejected when the file is read.
        let pace = pace.map_err(|error| StoreError::Refused(error.to_string()))?;
        let claim = Claim {
            grid: &key.name,
            gateway: key.gateway,
            pace: &pace,
            slots: demand.slots,
            part: *part,
            lead: self.lead,
            classes: &demand.classes,
            keys: Some(&demand.keys),
            at: None,
        };
        let (granted, trip) = key.link.call(&claim).await;
        let granted = key.record_reply(granted, REFUSED)?;
        self.clock.note(trip, granted.now);
        // Converts an instant of the store's clock to this gateway's clock.
        let own = |store_time: Moment| self.clock.own(store_time);
        // The lead rises at once and falls slowly: with a lead that is too short, slots arrive
        // after their time.
        let took = trip.received.since(own(granted.now));
        let mean = (self.lead * 7 + took) / 8;
        self.lead = took.max(mean);
        // The reply has one share for each class of the claim, in the same order.
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
