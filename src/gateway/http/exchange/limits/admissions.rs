//! Admissions of a request by its zones, until they are used or returned.
//!
//! A *zone* limits the rate of each key. Its admission has charged the request to the key; a
//! returned admission is refunded.

use config::Route;
use limit::Moment;
use smallvec::SmallVec;

use super::super::cost::UsedAdmissions;
use crate::zone::{InFlightPermit, ZoneAdmission};

/// Admissions of a request by its zones.
///
/// Dropping this returns the unused admissions to their zones.
#[derive(Default)]
pub(in super::super) struct ZoneAdmissions<'r>(pub(super) SmallVec<[ZoneAdmission<'r>; 1]>);

impl<'r> ZoneAdmissions<'r> {
    /// Returns whether no zone has admitted the request.
    pub(in super::super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the instant of the last admission; at least `began`.
    pub(in super::super) fn granted_at(&self, began: Moment) -> Moment {
        let granted = self.0.iter().map(|admission| admission.grant().at);
        granted.fold(began, Moment::max)
    }

    /// Uses all admissions. Their charges stay, unless the response on this route changes them.
    ///
    /// The request holds the returned permits until it ends.
    pub(in super::super) fn take(
        mut self,
        route: &Route,
    ) -> (UsedAdmissions<'r>, InFlightPermits<'r>) {
        let used = if route.charge_depends_on_response() {
            UsedAdmissions(self.0.iter().map(ZoneAdmission::used).collect())
        } else {
            UsedAdmissions::default()
        };
        let permits = self.0.iter_mut().filter_map(ZoneAdmission::use_up);
        (used, permits.collect())
    }

    /// Returns all admissions, because another zone or the origin's gate rejected the request.
    pub(in super::super) fn reject_elsewhere(self) {
        self.0.into_iter().for_each(ZoneAdmission::reject_elsewhere);
    }
}

/// Permits (`in_flight`) that a running request holds in its zones.
pub(in super::super) type InFlightPermits<'r> = Vec<InFlightPermit<'r>>;
