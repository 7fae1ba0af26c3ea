//! Tasks that call Redis (the *store*) for a gate, one for each thing that the gate shares.
//!
//! A gate can share its slots, its permits and its back-off with other gateways. The *grid* is the
//! shared schedule of slots; a *form* is the version of a state in the store. Each task runs on
//! the thread of one worker and calls for all workers. A [`Dialogue`] defines the calls of a task
//! and the use of the replies: in `shared_rate`, `shared_permits` and `shared_backoff`. `sharing`
//! starts the tasks.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, MutexGuard, Weak};

use futures_util::FutureExt;
use limit::Moment;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::store_key::StoreKey;
use super::{OriginGate, State};
use crate::store::{BACKOFF_FORM, GRID_FORM, PERMITS_FORM};
use crate::time::clock;
use crate::zone::{StoreError, StoreHealth};

/// Calls and replies between a gate and one key of the store.
pub(super) trait Dialogue {
    type Call;
    type Reply;

    /// Returns the gate's record of the task; `None`: the gate no longer shares the thing.
    fn caller(state: &mut State) -> Option<&mut Caller>;

    /// Returns the call that is due `now`; `None`: no call is due.
    fn next_call(gate: &OriginGate, state: &mut State, now: Moment) -> Option<Self::Call>;

    /// Calls the store.
    async fn call(
        &mut self,
        key: &mut StoreKey,
        call: &Self::Call,
    ) -> Result<Self::Reply, StoreError>;

    /// Hands the reply to the gate. Returns whether the next call waits until the store is back.
    ///
    /// `origin`: name of the gate's origin, for the log.
    fn use_reply(
        gate: &Arc<OriginGate>,
        state: MutexGuard<'_, State>,
        origin: &str,
        call: Self::Call,
        reply: Result<Self::Reply, StoreError>,
    ) -> bool;

    /// Called when the store is back after an outage.
    fn store_is_back(_state: &mut State) {}
}

/// Gate's record of a task that calls the store. Dropping it ends the task.
///
/// It is behind the gate's lock. The gate finds here whether it must wake the task.
pub(super) struct Caller {
    store: Arc<StoreHealth>,
    /// Wakes the task. Also identifies it among other tasks.
    wake: Arc<Notify>,
    /// Instant at which the task wakes by itself; `None`: only when it is woken.
    wakes_at: Option<Moment>,
    /// Whether the task waits for a reply.
    is_calling: bool,
    /// Reason for which the last call had no reply; `None`: it had one, or there was no call.
    pub(super) refusal: Option<StoreError>,
}

impl Caller {
    pub(super) fn new(store: &Arc<StoreHealth>) -> Self {
        Self {
            store: Arc::clone(store),
            wake: Arc::default(),
            wakes_at: None,
            is_calling: false,
            refusal: None,
        }
    }

    /// Returns whether the task calls this store, through a link with the same settings.
    pub(super) fn is_for(&self, store: &Arc<StoreHealth>) -> bool {
        Arc::ptr_eq(&self.store, store)
    }

    /// Makes the task check at once whether a call is due.
    pub(super) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Wakes the task if a call is due before the task wakes by itself.
    pub(super) fn wake_for(&mut self, due: Option<Moment>) {
        let is_sooner = |due: &Moment| self.wakes_at.is_none_or(|wakes_at| *due < wakes_at);
        if let Some(due) = due.filter(|due| !self.is_calling && is_sooner(due)) {
            self.wakes_at = Some(due);
            self.wake();
        }
    }

    /// Records when the next call is due. Begins it and returns true if that is now or earlier.
    pub(super) fn begin_if_due(&mut self, due: Option<Moment>, now: Moment) -> bool {
        self.is_calling = due.is_some_and(|due| due <= now);
        self.wakes_at = due.filter(|_| !self.is_calling);
        self.is_calling
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.wake();
    }
}

/// Thing that a gate can share with the gates of other gateways.
#[derive(Clone, Copy, Debug)]
pub(super) enum SharedThing {
    Slots,
    Permits,
    Backoff,
}

/// Task that calls the store for a gate, before it runs.
pub(crate) struct StoreTask {
    pub(super) gate: Weak<OriginGate>,
    pub(super) origin: String,
    pub(super) shared: SharedThing,
    /// Identifier of this gate in the cluster.
    pub(super) gateway: u64,
    pub(super) store: Arc<StoreHealth>,
    /// Wakes the task; the same as in the gate's [`Caller`].
    wake: Arc<Notify>,
}

impl StoreTask {
    pub(super) fn new(
        gate: &Arc<OriginGate>,
        origin: &config::Origin,
        shared: SharedThing,
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

    /// Returns the task's key in the store, for calls from this thread. Does not connect.
    pub(super) fn key(&self) -> StoreKey {
        let origin = &self.origin;
        let (kind, form) = match self.shared {
            SharedThing::Slots => ("gate", GRID_FORM),
            // Earlier versions called permits places. With the same name, gateways of both versions
            // share the permits during an upgrade.
            SharedThing::Permits => ("places", PERMITS_FORM),
            SharedThing::Backoff => ("backoff", BACKOFF_FORM),
        };
        let name = format!("{kind}:{origin}.{form}");
        // Calls for the back-off do not count in the metrics of the gate.
        let gate = self.gate.upgrade();
        let gate = gate.filter(|_| !matches!(self.shared, SharedThing::Backoff));
        let calls = gate.map(|gate| gate.metrics.claims());
        StoreKey::new(
            &self.store,
            origin,
            self.gateway,
            name,
            calls.unwrap_or_default(),
        )
    }

    /// Calls the store until the gate is dropped, or another task calls it for the gate.
    pub(super) async fn converse<D: Dialogue>(&self, dialogue: &mut D, key: &mut StoreKey) {
        while let Some(next) = self.next::<D>() {
            let call = match next {
                Ok(call) => call,
                // No call is due yet.
                Err(wakes_at) => {
                    self.wait_until(wakes_at).await;
                    continue;
                }
            };
            // A panic counts as no reply. The task must go on, as no other task calls for the gate.
            let called = AssertUnwindSafe(dialogue.call(key, &call))
                .catch_unwind()
                .await;
            let reply = called.unwrap_or_else(|_| Err(StoreError::Panicked));
            if self.hand_over::<D>(call, reply) {
                while self.is_needed::<D>() && !key.wait_until_back().await {}
                self.with_gate::<D, _>(|_, mut state| D::store_is_back(&mut state));
            }
        }
    }

    /// Returns the next call; `None`: the task ends.
    ///
    /// As the error if no call is due: the instant at which the task wakes by itself.
    fn next<D: Dialogue>(&self) -> Option<Result<D::Call, Option<Moment>>> {
        self.with_gate::<D, _>(|gate, mut state| {
            let call = D::next_call(gate, &mut state, clock::now());
            // Without a call: as the error, the instant at which the task wakes.
            call.ok_or_else(|| D::caller(&mut state)?.wakes_at)
        })
    }

    /// Hands a reply to the gate. Returns whether the next call waits until the store is back.
    fn hand_over<D: Dialogue>(&self, call: D::Call, reply: Result<D::Reply, StoreError>) -> bool {
        let waits = self.with_gate::<D, _>(|gate, mut state| {
            if let Some(caller) = D::caller(&mut state) {
                caller.is_calling = false;
                caller.refusal = reply.as_ref().err().cloned();
            }
            D::use_reply(gate, state, &self.origin, call, reply)
        });
        waits.unwrap_or_default()
    }

    /// Returns whether the gate still needs this task.
    fn is_needed<D: Dialogue>(&self) -> bool {
        self.with_gate::<D, _>(|_, _| ()).is_some()
    }

    /// Waits until the task is woken, or until this instant.
    async fn wait_until(&self, wakes_at: Option<Moment>) {
        let woken = self.wake.notified();
        match wakes_at {
            None => woken.await,
            Some(until) => timeout(until.since(clock::now()), woken)
                .await
                .unwrap_or_default(),
        }
    }

    /// Calls `act` with the locked gate.
    ///
    /// Returns `None`, and does not call `act`, if the gate was dropped, or if another task calls
    /// the store for the gate.
    fn with_gate<D: Dialogue, T>(
        &self,
        act: impl FnOnce(&Arc<OriginGate>, MutexGuard<'_, State>) -> T,
    ) -> Option<T> {
        let gate = self.gate.upgrade()?;
        let mut state = gate.lock();
        let caller = D::caller(&mut state)?;
        Arc::ptr_eq(&caller.wake, &self.wake).then(|| act(&gate, state))
    }
}
