use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};

use futures_util::FutureExt;
use limit::PoolCall;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::link::PlacesLink;
use super::{PoolTerms, Step};
use crate::gate::OriginGate;
use crate::time::clock;
use crate::zone::{StoreHealth, StoreRefusal};

/// The task that borrows places for a gate, before it runs.
pub(crate) struct PlaceBorrowing {
    pub(in crate::gate) gate: Weak<OriginGate>,
    /// What tells the gate from those at other gateways.
    pub(in crate::gate) gateway: u64,
    pub(in crate::gate) store: Arc<StoreHealth>,
    pub(in crate::gate) origin: String,
    /// Tells the task to look again.
    pub(in crate::gate) wake: Arc<Notify>,
}

impl PlaceBorrowing {
    /// Runs on the thread of one worker.
    pub(crate) async fn run(self) {
        let mut link = PlacesLink::new(&self.store, &self.origin, self.gateway);
        let mut last = None;
        self.borrow_places(&mut link, &mut last).await;
        // Without a gate nothing is at the origin any more. If another task borrows for it, all is
        // kept.
        let gate = self.gate.upgrade();
        let in_use = gate.map_or(Some(0), |gate| gate.left_in_use());
        if let (Some((call, terms)), Some(in_use)) = (last, in_use) {
            let all = PoolCall {
                number: call.number + 1,
                members: call.members,
                in_use,
                of_all: call.of_all,
                leaves: true,
                weight: 1,
                ..PoolCall::default()
            };
            let _lost = link.call(&all, terms).await;
        }
    }

    /// Calls the pool until the gate is dropped or another task does. `wake` tells them apart.
    async fn borrow_places(&self, link: &mut PlacesLink, last: &mut Option<(PoolCall, PoolTerms)>) {
        loop {
            let Some(step) = self.gate.upgrade().map(|it| it.next_call(&self.wake)) else {
                return;
            };
            match step {
                Step::End => return,
                Step::Wait(None) => self.wake.notified().await,
                Step::Wait(Some(until)) => {
                    let left = until.since(clock::now());
                    // Woken or not, it looks again.
                    let _either = timeout(left, self.wake.notified()).await;
                }
                Step::Call(call, terms) => {
                    *last = Some((call, terms));
                    // A panic counts as no answer: nothing else would renew the lease.
                    let asked = AssertUnwindSafe(link.call(&call, terms)).catch_unwind();
                    let answer = asked
                        .await
                        .unwrap_or_else(|_| Err(StoreRefusal::panicked()));
                    let Some(open) = self.gate.upgrade() else {
                        return;
                    };
                    let is_out = open.called(&self.wake, &self.origin, &answer);
                    drop(open);
                    if is_out && !self.wait_until_back(link).await {
                        return;
                    }
                }
            }
        }
    }

    /// Waits until the store is worth another call. Returns whether the gate still needs it.
    async fn wait_until_back(&self, link: &mut PlacesLink) -> bool {
        loop {
            let is_back = link.is_back().await;
            let Some(_) = (self.gate.upgrade()).filter(|gate| gate.borrows_by(&self.wake)) else {
                return false;
            };
            if is_back {
                return true;
            }
        }
    }
}
