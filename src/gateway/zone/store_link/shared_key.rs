//! Key of a shared zone, with its name in the store.

use std::rc::Rc;

use limit::{Limit, Moment};

use super::StoreLink;
use crate::store::{Charge, InForce, Join, Refund, Retune, StoreRate};

/// Key of a shared zone, with its name in the store.
pub(super) struct SharedKey {
    pub(super) zone: Rc<StoreLink>,
    /// Name in the store.
    pub(super) name: Vec<u8>,
}

impl SharedKey {
    pub(super) fn new(zone: &Rc<StoreLink>, key: &[u8]) -> Self {
        Self {
            zone: Rc::clone(zone),
            name: [&zone.name, key].concat(),
        }
    }

    /// Returns the name in the zone.
    pub(super) fn key(&self) -> &[u8] {
        &self.name[self.zone.name.len()..]
    }

    /// Returns the pace that this gateway's file has for the key.
    pub(super) fn pace(&self) -> &StoreRate {
        self.zone.sharing.paces.of(self.key())
    }

    /// Returns a join of a request with this limit.
    pub(super) fn join(&self, limit: Limit) -> Join<'_> {
        Join {
            key: &self.name,
            algorithm: self.zone.settings.algorithm,
            pace: self.pace(),
            limit,
            at: None,
        }
    }

    /// Returns a refund of this charge.
    pub(super) fn refund(&self, charge: Charge) -> Refund<'_> {
        Refund {
            key: &self.name,
            algorithm: self.zone.settings.algorithm,
            pace: self.pace(),
            charge,
            at: None,
        }
    }

    /// Returns a retune to the rate of this gateway's file.
    pub(super) fn retune(&self) -> Retune<'_> {
        Retune {
            key: &self.name,
            pace: self.pace(),
        }
    }

    /// Records the rate in force. `at` on the gateway's clock corresponds to `now` on the store's.
    pub(super) fn follows(&self, reported: InForce, now: Moment, at: Moment) -> InForce {
        let own = self.pace().rate();
        self.zone.compare(own, reported.rate, reported.differs, at);
        InForce {
            since: reported.since.map(|since| since.on_clock(now, at)),
            ..reported
        }
    }
}
