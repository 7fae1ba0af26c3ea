//! Restart of an actor after a panic, with its old address and the messages in its mailbox.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context as TaskContext, Poll, ready};
use std::time::Duration;

use actix::dev::{ContextFut, channel};
use actix::{Actor, Addr, AsyncContext, Context, Supervised};
use actix_rt::ArbiterHandle;
use limit::Moment;
use tokio::time::{Sleep, sleep};

use crate::observe::log::message;
use crate::observe::metrics::{ActorKind, count_restart};
use crate::observe::throttle::Throttle;
use crate::time::clock;

/// Capacity of an actor's mailbox. `do_send`, the only way of sending in this module, ignores it.
const MAILBOX_CAPACITY: usize = 16;
/// An actor that panics twice within this time pauses before it restarts.
const REPEATED_WITHIN: Duration = Duration::from_secs(10);
/// Duration of the pause before a restart.
///
/// A restarted supervisor has forgotten the charges of its keys. Without a pause, a supervisor that
/// panics at every request would admit all requests.
const RESTART_PAUSE: Duration = Duration::from_millis(500);

/// Actor that restarts after a panic.
///
/// The message that it was handling is lost. `restarting` removes all waiters from the actor's
/// state. Then `started` runs again.
pub(super) trait Restart: Supervised + Actor<Context = Context<Self>> {
    /// Kind of the actor, for the count of restarts.
    const KIND: ActorKind;
}

/// Number of a zone's supervisors that pause before their restart.
#[derive(Clone, Debug, Default)]
pub(super) struct PausedActors(Arc<AtomicUsize>);

impl PausedActors {
    /// Returns whether any of them pauses.
    pub(super) fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

/// Starts an actor on this thread. After a panic it restarts at once.
pub(super) fn start<A: Restart>(actor: A) -> Addr<A> {
    let context = Context::new();
    let address = context.address();
    actix_rt::spawn(Restarting {
        running: context.into_future(actor),
        pauses: None,
    });
    address
}

/// Starts the actor that `make` creates on `worker`.
///
/// After a panic the actor restarts at once, or after a pause if the previous panic was recent.
pub(super) fn start_on<A: Restart>(
    worker: &ArbiterHandle,
    paused: PausedActors,
    make: impl FnOnce() -> A + Send + 'static,
) -> Addr<A> {
    let (sender, receiver) = channel::channel(MAILBOX_CAPACITY);
    worker.spawn_fn(move || {
        actix_rt::spawn(Restarting {
            running: Context::with_receiver(receiver).into_future(make()),
            pauses: Some(Pauses {
                paused,
                last_panic: None,
                pause: None,
            }),
        });
    });
    Addr::new(sender)
}

/// Task of an actor: runs it, and restarts it after each panic.
struct Restarting<A: Restart> {
    running: ContextFut<A, Context<A>>,
    /// Pauses of the actor; `None` if it never pauses.
    pauses: Option<Pauses>,
}

/// Pauses of an actor between panics and restarts.
struct Pauses {
    /// Count that this actor is part of while it pauses.
    paused: PausedActors,
    last_panic: Option<Moment>,
    /// Present pause; `None` unless the actor pauses.
    pause: Option<Pin<Box<Sleep>>>,
}

impl<A: Restart> Future for Restarting<A> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<()> {
        static RESTARTS: Throttle = Throttle::new();
        loop {
            if let Some(pauses) = &mut self.pauses {
                ready!(pauses.poll_end(cx));
            }
            // A panic may leave the state half changed, but the restart replaces it.
            let polled = AssertUnwindSafe(|| Pin::new(&mut self.running).poll(cx));
            let panic = match catch_unwind(polled) {
                Ok(polled) => return polled,
                Err(panic) => panic,
            };
            count_restart(A::KIND);
            let (kind, cause) = (A::KIND.label(), message(&*panic));
            // `hidden`: number of such log lines that were left out since the last one.
            if let Some(hidden) = RESTARTS.show(clock::now()) {
                tracing::error!(
                    actor = kind,
                    panic = cause,
                    hidden,
                    "an actor panicked: it restarts, and its waiters get 503"
                );
            }
            // `false`: the actor had ended, so nothing is left to restart.
            if !self.running.restart() {
                return Poll::Ready(());
            }
            if let Some(pauses) = &mut self.pauses {
                pauses.note_panic();
            }
        }
    }
}

impl Pauses {
    /// Notes a panic. Begins a pause if the previous panic was very recent.
    fn note_panic(&mut self) {
        let now = clock::now();
        let previous = self.last_panic.replace(now);
        if previous.is_some_and(|previous| now.since(previous) < REPEATED_WITHIN) {
            self.pause = Some(Box::pin(sleep(RESTART_PAUSE)));
            self.paused.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits for the end of the present pause. Ready at once unless the actor pauses.
    fn poll_end(&mut self, cx: &mut TaskContext<'_>) -> Poll<()> {
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(cx));
            self.end();
        }
        Poll::Ready(())
    }

    /// Ends the present pause, if there is one.
    fn end(&mut self) {
        if self.pause.take().is_some() {
            self.paused.0.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Pauses {
    fn drop(&mut self) {
        self.end();
    }
}
