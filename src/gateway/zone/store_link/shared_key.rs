//! Key of a shared zone, with its name in the store, and the operations on it.
//!
//! A *pace* is a rate with the time since which it applies.

use std::rc::Rc;

use limit::{Limit, Moment};

use super::StoreLink;
use crate::store::{Charge, InForce, Join, Refund, Retune, StoreRate};

/// Key of a shared zone, with its name in the store.
pub(super) struct SharedKey {
    pub(super) link: Rc<StoreLink>,
    /// Name in the store.
    pub(super) name: Vec<u8>,
}

impl SharedKey {
    pub(super) fn new(link: &Rc<StoreLink>, key: &[u8]) -> Self {
        Self {
            link: Rc::clone(link),
            name: [&link.key_prefix, key].concat(),
        }
    }

    /// Returns the key without the prefix of its zone.
    pub(super) fn key(&self) -> &[u8] {
        &self.name[self.link.key_prefix.len()..]
    }

    /// Returns the pace that this gateway's file has for the key.
    pub(super) fn pace(&self) -> &StoreRate {
        self.link.sharing.paces.of(self.key())
    }

    /// Returns a join of a request with this limit.
    pub(super) fn join(&self, limit: Limit) -> Join<'_> {
        Join {
            key: &self.name,
            algorithm: self.link.settings.algorithm,
            pace: self.pace(),
            limit,
            at: None,
        }
    }

    /// Returns a refund of this charge.
    pub(super) fn refund(&self, charge: Charge) -> Refund<'_> {
        Refund {
            key: &self.name,
            algorithm: self.link.settings.algorithm,
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

    /// Compares the rate in force that the store reported with the file's rate, and returns it.
    ///
    /// The time in the result is on the gateway's clock, which shows `here` when the store's clock
    /// shows `there`.
    pub(super) fn note_rate(&self, mut reported: InForce, there: Moment, here: Moment) -> InForce {
        let file_rate = self.pace().rate();
        self.link
            .compare(file_rate, reported.rate, reported.differs, here);
        reported.since = reported.since.map(|since| since.on_clock(there, here));
        reported
    }
}
