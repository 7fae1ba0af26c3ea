//! The back-off of an origin that several gateways share: it tells them what it has learned, and
//! learns from them.
//!
//! One task of one worker asks the store. What it asks and when is [`limit::BackoffExchange`]; how it
//! reaches the store is [`LearningLink`].

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};
use std::time::Duration;

use actix_rt::ArbiterHandle;
use config;
use futures_util::FutureExt;
use limit::{Ask, Backoff, BackoffExchange, LearnedReply, Moment};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::OriginGate;
use super::alarms::Alarms;
use super::learning_link::LearningLink;
use super::store_key::new_gateway;
use crate::time::clock;
use crate::zone::{StoreHealth, StoreRefusal};

/// How a gate shares what its back-off learns.
#[derive(Debug)]
pub(super) struct SharedBackoff {
    exchange: BackoffExchange,
    store: Arc<StoreHealth>,
    /// Tells the task to look again.
    wake: Arc<Notify>,
    /// When the task looks by itself; `None`: only if it is told.
    looks: Option<Moment>,
    /// Why the store did not answer the last question; `None`: it did.
    why_alone: Option<StoreRefusal>,
}

impl SharedBackoff {
    /// Wakes the task if it has to ask before it looks by itself.
    pub(super) fn note(&mut self, backoff: &Backoff, now: Moment) {
        if self.looks.is_some_and(|looks| looks <= now) {
            // It is on its way.
            return;
        }
        let Some(due) = self.exchange.due(backoff, now) else {
            return;
        };
        if self.looks.is_none_or(|looks| due < looks) {
            self.looks = Some(due);
            self.wake.notify_one();
        }
    }

    /// Counts the cost of an answer of the origin.
    pub(super) fn count(&mut self, cost: u32) {
        self.exchange.count(cost);
    }

    /// Why it does not learn from others now; `None`: it does.
    pub(super) fn why_alone(&self) -> Option<&StoreRefusal> {
        self.why_alone.as_ref()
    }
}

/// What the task does next.
enum Step {
    /// The gate does not learn from others any more, or another task asks for it.
    End,
    /// It waits, until then at most.
    Wait(Option<Moment>),
    Ask(Box<Ask>),
}

impl OriginGate {
    /// Learns from the other gateways that share the origin from now on, if its settings say so.
    /// `worker`: where the task runs.
    pub(crate) fn share_backoff(
        self: &Arc<Self>,
        origin: &config::Origin,
        store: Option<&Arc<StoreHealth>>,
        worker: Option<&ArbiterHandle>,
    ) {
        let Some(learning) = self.begin_learning(origin, store.filter(|_| worker.is_some())) else {
            return;
        };
        if let Some(worker) = worker {
            worker.spawn_fn(move || {
                actix_rt::spawn(learning.run());
            });
        }
    }

    /// The part of [`share_backoff`](Self::share_backoff) that is not the task itself, which is
    /// returned if one has to begin.
    pub(crate) fn begin_learning(
        self: &Arc<Self>,
        origin: &config::Origin,
        store: Option<&Arc<StoreHealth>>,
    ) -> Option<Learning> {
        let mut state = self.lock();
        let backing_off = state.backing_off.as_mut()?;
        let Some(store) = store.filter(|_| origin.shared_backoff().is_some()) else {
            if let Some(shared) = backing_off.shared.take() {
                backing_off.share_as(None);
                shared.wake.notify_one();
            }
            return None;
        };
        let known = backing_off.shared.as_ref();
        if known.is_some_and(|shared| Arc::ptr_eq(&shared.store, store)) {
            return None;
        }
        let wake = Arc::new(Notify::new());
        let author = new_gateway(&origin.name);
        backing_off.share_as(Some(author));
        let before = backing_off.shared.replace(SharedBackoff {
            exchange: BackoffExchange::new(author),
            store: Arc::clone(store),
            wake: Arc::clone(&wake),
            looks: None,
            why_alone: None,
        });
        drop(state);
        if let Some(before) = before {
            before.wake.notify_one();
        }
        Some(Learning {
            gate: Arc::downgrade(self),
            store: Arc::clone(store),
            origin: origin.name.clone(),
            wake,
        })
    }

    fn next_question(&self, wake: &Arc<Notify>) -> Step {
        let mut state = self.lock();
        let now = clock::now();
        state.back_off(&self.metrics, now);
        let learning = state.backing_off.as_mut().and_then(|it| it.learning());
        let learning = learning.filter(|(_, shared)| Arc::ptr_eq(&shared.wake, wake));
        let Some((backoff, shared)) = learning else {
            return Step::End;
        };
        let due = shared.exchange.due(backoff, now);
        if due.is_none_or(|due| due > now) {
            shared.looks = due;
            return Step::Wait(due);
        }
        // Until the answer is here, nobody need wake the task.
        shared.looks = Some(now);
        Step::Ask(Box::new(shared.exchange.ask(backoff, now)))
    }

    /// Hands the store's answer to the back-off.
    fn learned(
        self: &Arc<Self>,
        wake: &Arc<Notify>,
        asked: &Ask,
        answer: Result<LearnedReply, StoreRefusal>,
    ) {
        let mut state = self.lock();
        let now = clock::now();
        let learning = state.backing_off.as_mut().and_then(|it| it.learning());
        let learning = learning.filter(|(_, shared)| Arc::ptr_eq(&shared.wake, wake));
        let Some((backoff, shared)) = learning else {
            return;
        };
        let told = match answer {
            Ok(told) => told,
            Err(why) => {
                shared.why_alone = Some(why);
                return shared.exchange.failed();
            }
        };
        shared.why_alone = None;
        let adopted = shared.exchange.answered(backoff, asked, &told, now);
        self.metrics.count_adopted(adopted);
        let released = state.release(&self.metrics, now);
        let is_told = Alarms::set_here(self, &mut state, now);
        drop(state);
        self.tell(released, is_told);
    }
}

/// The task that asks for a gate, before it runs.
pub(crate) struct Learning {
    gate: Weak<OriginGate>,
    store: Arc<StoreHealth>,
    origin: String,
    /// Tells the task to look again.
    wake: Arc<Notify>,
}

impl Learning {
    /// Runs on the thread of one worker.
    pub(crate) async fn run(self) {
        let mut link = LearningLink::new(&self.store, &self.origin);
        loop {
            let Some(step) = self.gate.upgrade().map(|it| it.next_question(&self.wake)) else {
                return;
            };
            match step {
                Step::End => return,
                Step::Wait(None) => self.wake.notified().await,
                Step::Wait(Some(until)) => {
                    let left: Duration = until.since(clock::now());
                    // Woken or not, it looks again.
                    let _either = timeout(left, self.wake.notified()).await;
                }
                Step::Ask(ask) => {
                    // A panic counts as no answer: nothing else would ask.
                    let asked = AssertUnwindSafe(link.ask(&ask)).catch_unwind();
                    let answer = asked
                        .await
                        .unwrap_or_else(|_| Err(StoreRefusal::panicked()));
                    let is_told = answer.is_ok();
                    let Some(gate) = self.gate.upgrade() else {
                        return;
                    };
                    gate.learned(&self.wake, &ask, answer);
                    drop(gate);
                    if !is_told {
                        link.wait_until_back().await;
                    }
                }
            }
        }
    }
}
