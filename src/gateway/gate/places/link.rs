use std::sync::Arc;

use limit::{PoolCall, PoolReply};

use super::super::store_key::StoreKey;
use super::super::store_task::StoreTask;
use super::{OriginGate, PoolTerms};
use crate::observe::metrics::{CountBy, StoreResult};
use crate::store::{PLACES_FORM, PlacesCall};
use crate::zone::{StoreRefusal, store_result};

/// A gate's way to the pool of places that gateways share before its origin.
///
/// One task of one worker has it, and uses the link of that worker.
pub(in crate::gate) struct PlacesLink {
    /// The pool.
    pub(super) key: StoreKey,
    calls: Arc<CountBy<StoreResult>>,
    /// What the pool was told last.
    last: Option<(PoolCall, PoolTerms)>,
}

impl PlacesLink {
    /// The way of a task, from its thread. Does not connect.
    pub(in crate::gate) fn new(task: &StoreTask) -> Self {
        Self {
            key: StoreKey::new(task, "places", PLACES_FORM),
            calls: task.claims(),
            last: None,
        }
    }

    /// Tells the pool what the gateway holds and wants. `terms`: of this gateway's file.
    ///
    /// # Errors
    ///
    /// Returns an error if the pool did not answer in time.
    pub(super) async fn tell(
        &mut self,
        call: &PoolCall,
        terms: PoolTerms,
    ) -> Result<PoolReply, StoreRefusal> {
        self.last = Some((*call, terms));
        self.key.begin();
        let call = PlacesCall {
            pool: &self.key.name,
            gateway: self.key.gateway,
            most: (terms.limits.most, terms.since),
            orphan: terms.limits.orphan,
            call: *call,
            at: None,
        };
        let (reply, _) = self.key.link.run(self.key.link.store().places(&call)).await;
        self.calls.add(store_result(reply.as_ref().err()), 1);
        reply.map_err(|error| self.key.note(&error, "places"))
    }

    /// Gives back what the pool has lent, if nothing calls for the gate any more.
    ///
    /// `gate`: `None` if it was dropped, so that nothing is at the origin. If another task calls for
    /// it, all is kept.
    pub(in crate::gate) async fn end(mut self, gate: Option<Arc<OriginGate>>) {
        let in_use = gate.map_or(Some(0), |gate| gate.left_in_use());
        if let (Some((call, terms)), Some(in_use)) = (self.last, in_use) {
            let all = PoolCall {
                number: call.number + 1,
                members: call.members,
                in_use,
                of_all: call.of_all,
                leaves: true,
                weight: 1,
                ..PoolCall::default()
            };
            let _lost = self.tell(&all, terms).await;
        }
    }
}
