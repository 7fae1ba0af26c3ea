//! Shared back-off of an origin: exchanges through Redis what each gateway has learned.
//!
//! *Learned* are the lowered limits and the pauses of a back-off. [`limit::BackoffExchange`]
//! decides what to send, and when. A task (`store_task`) calls the functions of [`Dialogue`] below.

use std::sync::{Arc, MutexGuard};

use limit::{Backoff, BackoffExchange, LearnedQuery, LearnedReply, Moment};

use super::store_key::{StoreKey, new_gateway};
use super::store_task::{Caller, Dialogue, SharedThing, StoreTask};
use super::{OriginGate, State};
use crate::store::BackoffCall;
use crate::time::clock;
use crate::zone::{StoreError, StoreHealth};

/// State with which a gate shares its back-off.
pub(super) struct SharedBackoff {
    exchange: BackoffExchange,
    /// Record of the task that calls the store.
    pub(super) caller: Caller,
}

impl SharedBackoff {
    /// Wakes the task if a call is due before the task wakes by itself.
    pub(super) fn wake_task(&mut self, backoff: &Backoff, now: Moment) {
        self.caller.wake_for(self.exchange.due(backoff, now));
    }

    /// Counts the cost of an answer from the origin.
    pub(super) fn count_answer(&mut self, cost: u32) {
        self.exchange.count(cost);
    }
}

impl OriginGate {
    /// Shares the back-off through `store` from now on, if the origin's settings ask for it.
    ///
    /// Returns the task to start; `None` if no new task is needed.
    pub(super) fn share_backoff(
        self: &Arc<Self>,
        origin: &config::Origin,
        store: Option<&Arc<StoreHealth>>,
    ) -> Option<StoreTask> {
        let mut state = self.lock();
        let backing_off = state.backing_off.as_mut()?;
        let Some(store) = store.filter(|_| origin.shared_backoff().is_some()) else {
            if backing_off.shared.take().is_some() {
                backing_off.backoff.share_as(None);
            }
            return None;
        };
        let known = backing_off.shared.as_ref();
        if known.is_some_and(|shared| shared.caller.is_for(store)) {
            return None;
        }
        let gateway = new_gateway(&origin.name);
        let caller = Caller::new(store);
        let task = StoreTask::new(self, origin, SharedThing::Backoff, gateway, &caller);
        backing_off.backoff.share_as(Some(gateway));
        backing_off.shared = Some(SharedBackoff {
            exchange: BackoffExchange::new(gateway),
            caller,
        });
        Some(task)
    }
}

/// Exchange of the back-off with the store.
pub(super) struct LearningLink;

impl Dialogue for LearningLink {
    type Call = LearnedQuery;
    type Reply = LearnedReply;

    fn caller(state: &mut State) -> Option<&mut Caller> {
        let shared = state.backing_off.as_mut()?.shared.as_mut();
        shared.map(|shared| &mut shared.caller)
    }

    fn next_call(gate: &OriginGate, state: &mut State, now: Moment) -> Option<LearnedQuery> {
        state.back_off(&gate.metrics, now);
        let (backoff, shared) = state.backing_off.as_mut()?.shared_parts()?;
        let due = shared.exchange.due(backoff, now);
        let begins = shared.caller.begin_if_due(due, now);
        begins.then(|| shared.exchange.ask(backoff, now))
    }

    async fn call(
        &mut self,
        key: &mut StoreKey,
        ask: &LearnedQuery,
    ) -> Result<LearnedReply, StoreError> {
        let call = BackoffCall {
            key: &key.name,
            ask,
            at: None,
        };
        let (reply, _) = key.link.call(&call).await;
        let reply = key.record_reply(reply, "back-off: this gateway backs off alone");
        key.forget_outage();
        reply
    }

    fn use_reply(
        gate: &Arc<OriginGate>,
        mut state: MutexGuard<'_, State>,
        _: &str,
        asked: LearnedQuery,
        reply: Result<LearnedReply, StoreError>,
    ) -> bool {
        let now = clock::now();
        let backing_off = state.backing_off.as_mut();
        let Some((backoff, shared)) = backing_off.and_then(|it| it.shared_parts()) else {
            return false;
        };
        let Ok(reply) = reply else {
            shared.exchange.failed();
            // The next call waits until the store is back.
            return true;
        };
        let adopted = shared.exchange.answered(backoff, &asked, &reply, now);
        gate.metrics.adopted.add_cuts(adopted);
        gate.advance(state, now);
        // The task need not wait for the store.
        false
    }
}
