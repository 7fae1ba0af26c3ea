//! Calls of the pool from which gateways lease the permits of an origin.
//!
//! The parent module has the state of the gate's permits, and defines pool and lease.

use std::sync::Arc;

use limit::{PoolCall, PoolReply};

use super::super::store_key::StoreKey;
use super::{OriginGate, PoolTerms};
use crate::store::PermitsCall;
use crate::zone::StoreError;

/// Link of one gate to the pool of permits that gateways share. One task of one worker owns it.
#[derive(Default)]
pub(in crate::gate) struct PermitsLink {
    /// Last call of the pool, for the call that gives all back; `None`: no call yet.
    last: Option<(PoolCall, PoolTerms)>,
}

impl PermitsLink {
    /// Reports to the pool how many permits this gateway holds and needs.
    ///
    /// `terms`: the pool's limits in this gateway's file.
    ///
    /// # Errors
    ///
    /// Returns an error if the pool did not answer in time.
    pub(super) async fn report(
        &mut self,
        key: &mut StoreKey,
        call: &PoolCall,
        terms: PoolTerms,
    ) -> Result<PoolReply, StoreError> {
        self.last = Some((*call, terms));
        let call = PermitsCall {
            pool: &key.name,
            gateway: key.gateway,
            most: (terms.limits.permits, terms.since),
            orphan: terms.limits.orphan,
            call: *call,
            at: None,
        };
        let (reply, _) = key.link.call(&call).await;
        key.record_reply(reply, "shared permits")
    }

    /// Gives all permits back to the pool, if no other task calls it for this gate.
    ///
    /// `gate`: `None` if the gate was dropped, so that no request is at the origin. If another task
    /// calls the pool for this gate, that task keeps the permits.
    pub(in crate::gate) async fn end(mut self, key: &mut StoreKey, gate: Option<Arc<OriginGate>>) {
        let in_use = gate.map_or(Some(0), |gate| gate.in_use_after_sharing());
        if let (Some((call, terms)), Some(in_use)) = (self.last, in_use) {
            let give_back_all = PoolCall {
                number: call.number + 1,
                members: call.members,
                in_use,
                lowered_maximum: call.lowered_maximum,
                leaves: true,
                weight: 1,
                ..PoolCall::default()
            };
            // If the call fails, the pool withholds the permits as those of a vanished gateway.
            let _failed = self.report(key, &give_back_all, terms).await;
        }
    }
}
