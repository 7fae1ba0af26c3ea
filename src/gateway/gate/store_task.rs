//! The tasks that call the store for a gate: one for each thing that it shares with other gateways.
//!
//! Each runs on the thread of one worker, which calls for all workers. What a task calls for, and
//! what becomes of the reply, is a [`Dialogue`].

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
use crate::zone::{StoreHealth, StoreRefusal};

/// What a gate and a key of the store tell each other.
pub(super) trait Dialogue {
    type Call;
    type Reply;

    /// The task as its gate knows it; `None`: the gate does not share this any more.
    fn caller(state: &mut State) -> Option<&mut Caller>;

    /// The way to the store.
    fn key(&mut self) -> &mut StoreKey;

    /// Returns the call that is due `now`. If none is, the task waits.
    fn next(gate: &OriginGate, state: &mut State, now: Moment) -> Option<Self::Call>;

    /// Calls the store.
    async fn call(&mut self, call: &Self::Call) -> Result<Self::Reply, StoreRefusal>;

    /// Hands the reply to the gate. Returns whether the next call waits until the store is back.
    fn replied(
        &mut self,
        gate: &Arc<OriginGate>,
        state: MutexGuard<'_, State>,
        call: Self::Call,
        reply: Result<Self::Reply, StoreRefusal>,
    ) -> bool;

    /// The store is back.
    fn found(_state: &mut State) {}
}

/// A task that calls the store, as its gate knows it. The task ends when this is dropped.
#[derive(Debug)]
pub(super) struct Caller {
    store: Arc<StoreHealth>,
    /// Wakes the task, and tells it from others.
    wake: Arc<Notify>,
    /// When the task looks by itself; `None`: only if it is woken.
    looks: Option<Moment>,
    /// Whether it waits for a reply.
    is_calling: bool,
    /// Why the last call had no reply; `None`: it had one.
    pub(super) refusal: Option<StoreRefusal>,
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

    /// Returns whether it calls this store, through a link with the same settings.
    pub(super) fn calls(&self, store: &Arc<StoreHealth>) -> bool {
        Arc::ptr_eq(&self.store, store)
    }

    /// Lets the task look at once whether a call is due.
    pub(super) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Wakes the task if a call is due before it looks by itself.
    pub(super) fn note(&mut self, due: Option<Moment>) {
        let is_sooner = |due: &Moment| self.looks.is_none_or(|looks| *due < looks);
        if let Some(due) = due.filter(|due| !self.is_calling && is_sooner(due)) {
            self.looks = Some(due);
            self.wake();
        }
    }

    /// Notes when the next call is due. Returns whether that is `now`.
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

/// What a gate shares with the gates of other gateways.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shared {
    Slots,
    Places,
    Backoff,
}

/// What a task does next.
enum Next<C> {
    Call(C),
    /// It looks again then, or when it is woken.
    Look(Option<Moment>),
}

/// A task that calls the store for a gate, before it runs.
pub(crate) struct StoreTask {
    pub(super) gate: Weak<OriginGate>,
    pub(super) origin: String,
    pub(super) shared: Shared,
    /// What tells the gate from those at other gateways.
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

    /// Counts of what the gate asks the store for.
    pub(super) fn claims(&self) -> Arc<CountBy<StoreResult>> {
        let gate = self.gate.upgrade();
        gate.map(|gate| gate.metrics.claims()).unwrap_or_default()
    }

    /// Calls until the gate is dropped, or another task calls for it.
    pub(super) async fn converse<D: Dialogue>(&self, dialogue: &mut D) {
        while let Some(next) = self.next::<D>() {
            let call = match next {
                Next::Call(call) => call,
                Next::Look(at) => {
                    self.wait(at).await;
                    continue;
                }
            };
            // A panic counts as no reply: nothing else would call for the gate.
            let called = AssertUnwindSafe(dialogue.call(&call)).catch_unwind().await;
            let reply = called.unwrap_or_else(|_| Err(StoreRefusal::panicked()));
            if self.hand_over(dialogue, call, reply) {
                while self.needs::<D>() && !dialogue.key().is_back().await {}
                self.found::<D>();
            }
        }
    }

    /// Returns what the task does next; `None`: it ends.
    fn next<D: Dialogue>(&self) -> Option<Next<D::Call>> {
        let gate = self.gate.upgrade()?;
        let mut state = self.state::<D>(&gate)?;
        let call = D::next(&gate, &mut state, clock::now());
        let looks = D::caller(&mut state)?.looks;
        Some(call.map_or(Next::Look(looks), Next::Call))
    }

    /// Hands a reply to the gate. Returns whether the next call waits until the store is back.
    fn hand_over<D: Dialogue>(
        &self,
        dialogue: &mut D,
        call: D::Call,
        reply: Result<D::Reply, StoreRefusal>,
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

    /// Whether the gate still needs this task.
    fn needs<D: Dialogue>(&self) -> bool {
        let gate = self.gate.upgrade();
        gate.is_some_and(|gate| self.state::<D>(&gate).is_some())
    }

    /// Tells the gate that the store is back.
    fn found<D: Dialogue>(&self) {
        let gate = self.gate.upgrade();
        if let Some(mut state) = gate.as_ref().and_then(|gate| self.state::<D>(gate)) {
            D::found(&mut state);
        }
    }

    /// Waits until the task is woken, or until it looks by itself.
    async fn wait(&self, looks: Option<Moment>) {
        let woken = self.wake.notified();
        match looks {
            None => woken.await,
            Some(until) => timeout(until.since(clock::now()), woken)
                .await
                .unwrap_or_default(),
        }
    }

    /// Locks the gate; `None`: this task is not the one that calls for it.
    fn state<'g, D: Dialogue>(&self, gate: &'g OriginGate) -> Option<MutexGuard<'g, State>> {
        let mut state = gate.lock();
        let caller = D::caller(&mut state)?;
        Arc::ptr_eq(&caller.wake, &self.wake).then_some(state)
    }
}
