use std::sync::Arc;

use limit::{PoolCall, PoolReply};

use super::super::store_key::StoreKey;
use super::PoolTerms;
use crate::observe::metrics::ClaimMetrics;
use crate::store::{PLACES_FORM, PlacesCall};
use crate::zone::{StoreHealth, StoreRefusal, store_result};

/// A gate's way to the pool of places that gateways share before its origin.
///
/// One task of one worker has it, and uses the link of that worker.
pub(super) struct PlacesLink {
    /// The pool.
    key: StoreKey,
    /// What tells this gateway from others.
    gateway: [u8; 8],
    calls: ClaimMetrics,
}

impl PlacesLink {
    /// The way of the gate of this origin, from this thread. Does not connect.
    pub(super) fn new(store_health: &Arc<StoreHealth>, origin: &str, gateway: u64) -> Self {
        let name = format!("places:{origin}.{PLACES_FORM}");
        Self {
            key: StoreKey::new(store_health, origin, name),
            gateway: gateway.to_le_bytes(),
            calls: ClaimMetrics::of(origin),
        }
    }

    /// Tells the pool what the gateway holds and wants. `terms`: of this gateway's file.
    ///
    /// # Errors
    ///
    /// Returns an error if the pool did not answer in time.
    pub(super) async fn call(
        &mut self,
        call: &PoolCall,
        terms: PoolTerms,
    ) -> Result<PoolReply, StoreRefusal> {
        self.key.begin();
        let call = PlacesCall {
            pool: &self.key.name,
            gateway: self.gateway,
            most: terms.most,
            orphan: terms.orphan,
            call: *call,
            at: None,
        };
        let (reply, _) = self.key.link.run(self.key.link.store().places(&call)).await;
        self.calls.count(store_result(reply.as_ref().err()));
        reply.map_err(|error| self.key.note(&error, "places"))
    }

    /// Waits until the store is worth another try. Returns whether it takes writes then.
    ///
    /// It is out from now on, if that is why the last call was not answered.
    pub(super) async fn is_back(&mut self) -> bool {
        self.key.is_back().await
    }
}
