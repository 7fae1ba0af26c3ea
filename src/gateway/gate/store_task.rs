//! Tasks that call the store for a gate, one for each thing that the gate shares.
//!
//! Each task runs on the thread of one worker and calls for all workers. A [`Dialogue`] defines the
//! calls of a task and the use of the replies.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, MutexGuard, Weak};

use futures_util::FutureExt;
use limit::Moment;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::store_key::StoreKey;
use super::{OriginGate, State};
use crate::observe::metrics::{CountBy, StoreResult};
use crate::time::clock;
use crate::zone::{StoreError, StoreHealth};

/// Calls and replies between a gate and one key of the store.
pub(super) trait Dialogue {
    type Call;
    type Reply;

    /// Returns the task's record in its gate; `None`: the gate no longer shares this.
    fn caller(state: &mut State) -> Option<&mut Caller>;

    /// Returns the key in the store.
    fn key(&mut self) -> &mut StoreKey;

    /// Returns the call that is due `now`; `None`: the task waits.
    fn next(gate: &OriginGate, state: &mut State, now: Moment) -> Option<Self::Call>;

    /// Calls the store.
    async fn call(&mut self, call: &Self::Call) -> Result<Self::Reply, StoreError>;

    /// Hands the reply to the gate. Returns whether the next call waits until the store is back.
    fn replied(
        &mut self,
        gate: &Arc<OriginGate>,
        state: MutexGuard<'_, State>,
        call: Self::Call,
        reply: Result<Self::Reply, StoreError>,
    ) -> bool;

    /// Called when the store is back after an outage.
    fn found(_state: &mut State) {}
}

/// Gate's record of a task that calls the store. Dropping it ends the task.
pub(super) struct Caller {
    store: Arc<StoreHealth>,
    /// Wakes the task. Also identifies it among other tasks.
    wake: Arc<Notify>,
    /// Instant at which the task wakes by itself; `None`: only when it is woken.
    looks: Option<Moment>,
    /// Whether the task waits for a reply.
    is_calling: bool,
    /// Reason for which the last call had no reply; `None`: it had one.
    pub(super) refusal: Option<StoreError>,
}

impl Caller {
    pub(super) fn new(store: &Arc<StoreHealth>) -> Self {
        Self {
            store: Arc::clone(store),
            wake: Arc::default(),
            looks: None,
            is_calling: false,
            refusal: None,
        }
    }

    /// Returns whether the task calls this store, through a link with the same settings.
    pub(super) fn calls(&self, store: &Arc<StoreHealth>) -> bool {
        Arc::ptr_eq(&self.store, store)
    }

    /// Makes the task check at once whether a call is due.
    pub(super) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Wakes the task if a call is due before the task wakes by itself.
    pub(super) fn note(&mut self, due: Option<Moment>) {
        let is_sooner = |due: &Moment| self.looks.is_none_or(|looks| *due < looks);
        if let Some(due) = due.filter(|due| !self.is_calling && is_sooner(due)) {
            self.looks = Some(due);
            self.wake();
        }
    }

    /// Records when the next call is due. Returns whether it is due `now`.
    pub(super) fn begins(&mut self, due: Option<Moment>, now: Moment) -> bool {
        self.is_calling = due.is_some_and(|due| due <= now);
        self.looks = due.filter(|_| !self.is_calling);
        self.is_calling
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.wake();
    }
}

/// Things that a gate can share with the gates of other gateways.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shared {
    Slots,
    Permits,
    Backoff,
}

/// Task that calls the store for a gate, before it runs.
pub(crate) struct StoreTask {
    pub(super) gate: Weak<OriginGate>,
    pub(super) origin: String,
    pub(super) shared: Shared,
    /// Identifier of this gate in the cluster.
    pub(super) gateway: u64,
    pub(super) store: Arc<StoreHealth>,
    wake: Arc<Notify>,
}

impl StoreTask {
    pub(super) fn new(
        gate: &Arc<OriginGate>,
        origin: &config::Origin,
        shared: Shared,
        gateway: u64,
        caller: &Caller,
    ) -> Self {
        Self {
            gate: Arc::downgrade(gate),
            origin: origin.name.clone(),
            shared,
            gateway,
            store: Arc::clone(&caller.store),
            wake: Arc::clone(&caller.wake),
        }
    }

    /// Returns the key of this kind and format in the store, for calls from this thread.
    pub(super) fn key(&self, kind: &str, form: u8) -> StoreKey {
        let (origin, calls) = (&self.origin, self.claims());
        let name = format!("{kind}:{origin}.{form}");
        StoreKey::new(&self.store, origin, self.gateway, name, calls)
    }

    /// Returns the counters of the gate's calls of the store. Those for the back-off do not count.
    fn claims(&self) -> Arc<CountBy<StoreResult>> {
        let gate = self.gate.upgrade();
        let counted = gate.filter(|_| !matches!(self.shared, Shared::Backoff));
        counted
            .map(|gate| gate.metrics.claims())
            .unwrap_or_default()
    }

    /// Calls the store until the gate is dropped, or another task calls it for the gate.
    pub(super) async fn converse<D: Dialogue>(&self, dialogue: &mut D) {
        while let Some(next) = self.next::<D>() {
            let call = match next {
                Ok(call) => call,
                Err(looks) => {
                    self.wait(looks).await;
                    continue;
                }
            };
            // A panic counts as no reply. The task must go on, as no other task calls for the gate.
            let called = AssertUnwindSafe(dialogue.call(&call)).catch_unwind().await;
            let reply = called.unwrap_or_else(|_| Err(StoreError::Panicked));
            if self.hand_over(dialogue, call, reply) {
                while self.needs::<D>() && !dialogue.key().is_back().await {}
                self.found::<D>();
            }
        }
    }

    /// Returns the next call, or the instant at which to check again; `None`: the task ends.
    fn next<D: Dialogue>(&self) -> Option<Result<D::Call, Option<Moment>>> {
        let gate = self.gate.upgrade()?;
        let mut state = self.state::<D>(&gate)?;
        let call = D::next(&gate, &mut state, clock::now());
        Some(call.ok_or(D::caller(&mut state)?.looks))
    }

    /// Hands a reply to the gate. Returns whether the next call waits until the store is back.
    fn hand_over<D: Dialogue>(
        &self,
        dialogue: &mut D,
        call: D::Call,
        reply: Result<D::Reply, StoreError>,
    ) -> bool {
        let Some(gate) = self.gate.upgrade() else {
            return false;
        };
        let Some(mut state) = self.state::<D>(&gate) else {
            return false;
        };
        if let Some(caller) = D::caller(&mut state) {
            caller.is_calling = false;
            caller.refusal = reply.as_ref().err().cloned();
        }
        dialogue.replied(&gate, state, call, reply)
    }

    /// Returns whether the gate still needs this task.
    fn needs<D: Dialogue>(&self) -> bool {
        let gate = self.gate.upgrade();
        gate.is_some_and(|gate| self.state::<D>(&gate).is_some())
    }

    /// Notifies the gate that the store is back.
    fn found<D: Dialogue>(&self) {
        let gate = self.gate.upgrade();
        if let Some(mut state) = gate.as_ref().and_then(|gate| self.state::<D>(gate)) {
            D::found(&mut state);
        }
    }

    /// Waits until the task is woken, or until it wakes by itself.
    async fn wait(&self, looks: Option<Moment>) {
        let woken = self.wake.notified();
        match looks {
            None => woken.await,
            Some(until) => timeout(until.since(clock::now()), woken)
                .await
                .unwrap_or_default(),
        }
    }

    /// Locks the gate; `None`: another task calls the store for the gate.
    fn state<'g, D: Dialogue>(&self, gate: &'g OriginGate) -> Option<MutexGuard<'g, State>> {
        let mut state = gate.lock();
        let caller = D::caller(&mut state)?;
        Arc::ptr_eq(&caller.wake, &self.wake).then_some(state)
    }
}
