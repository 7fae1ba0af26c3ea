//! Invariant: requests are decided by the store, or by the zone's fallback.

use std::rc::Rc;

use config::OnStoreFailure;

use super::{Checked, Request, is_alone};
use crate::observe::metrics::Rejected;
use crate::simulation::scenario::Scenario;
use crate::zone::Charge;

/// Invariant: while nothing fails the store decides all requests, otherwise the zone's fallback.
pub(super) struct Fallback(Rc<Scenario>);

impl Fallback {
    pub(super) fn new(scenario: &Rc<Scenario>) -> Self {
        Self(Rc::clone(scenario))
    }

    pub(super) fn departed(&self, request: &Request, charge: Charge) -> Checked {
        match charge {
            Charge::Store(_) => Ok(()),
            Charge::Nothing => self.falls_back_to(request, OnStoreFailure::Open),
            _ if is_alone(charge) => self.falls_back_to(request, OnStoreFailure::Local),
            _ => Err(format!("request {} was charged {charge:?}", request.id)),
        }
    }

    pub(super) fn rejected(&self, request: &Request, reason: Rejected) -> Checked {
        match reason {
            Rejected::Store => self.falls_back_to(request, OnStoreFailure::Closed),
            Rejected::Burst | Rejected::MaxWait => Ok(()),
            _ => Err(format!("request {} was rejected: {reason:?}", request.id)),
        }
    }

    fn falls_back_to(&self, request: &Request, what: OnStoreFailure) -> Checked {
        let expected = self.0.zones[request.zone].on_store_failure;
        if self.0.is_calm() {
            return Err(format!(
                "request {} was decided without the store",
                request.id
            ));
        }
        if expected != what {
            return Err(format!(
                "request {} was decided as for {what:?}",
                request.id
            ));
        }
        Ok(())
    }
}
