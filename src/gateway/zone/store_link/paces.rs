//! Paces: rates of a shared zone with the time since which they apply, as the store keeps them.
//!
//! If gateways have different rates, the store uses the newest one.

use std::sync::Arc;

use config::{Plans, Zone};
use limit::{Moment, Rate};

use crate::store::StoreRate;

/// Pace of each key of a shared zone: the pace of its plan or of the zone.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::zone) struct Paces {
    /// Pace of the zone, then the paces of the plans in the order of the file.
    paces: Arc<[StoreRate]>,
    plans: Plans,
}

impl Paces {
    /// Computes the paces of a zone whose file has had these rates since `since`.
    ///
    /// All paces have the same `since`. When a key changes its plan, the new rate is new to the
    /// key, even if the plan has had it for long.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot keep one of the rates.
    pub(in crate::zone) fn new(zone: &Zone, since: Moment) -> Result<Self, &'static str> {
        let plan_rates = zone.plans.iter().map(|plan| plan.rate.unwrap_or(zone.rate));
        let rates = std::iter::once(zone.rate).chain(plan_rates);
        let paces = rates.map(|rate| StoreRate::new(rate, zone.algorithm, since));
        Ok(Self {
            paces: paces.collect::<Result<_, _>>()?,
            plans: zone.plans.clone(),
        })
    }

    /// Returns when the file got these rates.
    pub(in crate::zone) fn since(&self) -> Moment {
        self.paces[0].since()
    }

    /// Returns the rate of keys without a plan.
    pub(super) fn zone_rate(&self) -> Rate {
        self.paces[0].rate()
    }

    /// Returns the pace of a key.
    pub(super) fn of(&self, key: &[u8]) -> &StoreRate {
        &self.paces[self.plans.index_of(key).map_or(0, |plan| plan + 1)]
    }
}
