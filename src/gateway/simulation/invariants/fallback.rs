//! Invariant: requests are decided by the store, or by the zone's fallback.
//!
//! The fallback of a zone is its setting `on_store_failure`: it decides while the store cannot be
//! reached. `open` admits all requests, `closed` rejects them, `local` lets each gateway decide
//! *alone*. A method with the name of an event, such as `departed`, records the event.

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
            Charge::Nothing => self.check_fallback(request, OnStoreFailure::Open),
            _ if is_alone(charge) => self.check_fallback(request, OnStoreFailure::Local),
            _ => Err(format!("request {} was charged {charge:?}", request.id)),
        }
    }

    pub(super) fn rejected(&self, request: &Request, reason: Rejected) -> Checked {
        match reason {
            Rejected::Store => self.check_fallback(request, OnStoreFailure::Closed),
            Rejected::Burst | Rejected::MaxWait => Ok(()),
            _ => Err(format!("request {} was rejected: {reason:?}", request.id)),
        }
    }

    /// Checks that a request may be decided without the store, by this fallback of its zone.
    fn check_fallback(&self, request: &Request, fallback: OnStoreFailure) -> Checked {
        let expected = self.0.zones[request.zone].on_store_failure;
        if self.0.is_calm() {
            let id = request.id;
            return Err(format!("request {id} was decided without the store"));
        }
        if expected != fallback {
            let id = request.id;
            return Err(format!("request {id} was decided as for {fallback:?}"));
        }
        Ok(())
    }
}
