//! Restart of an actor after a panic, with its old address and the messages in its mailbox.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix::dev::{ContextFut, channel};
use actix::{Actor, Addr, AsyncContext, Context, Supervised};
use actix_rt::ArbiterHandle;
use futures_util::FutureExt;
use limit::Moment;
use tokio::time::sleep;

use crate::observe::log::message;
use crate::observe::metrics::{ActorKind, count_restart};
use crate::observe::throttle::Throttle;
use crate::time::clock;

/// Capacity of an actor's mailbox. Does not bound `do_send`, the only way of sending used here.
const MAILBOX: usize = 16;
/// An actor that panics twice within this time pauses before it restarts.
const REPEATED_WITHIN: Duration = Duration::from_secs(10);
/// Duration of the pause before a restart.
///
/// A restarted supervisor has forgotten its keys' charges. Without a pause, a supervisor that
/// panics at every request would admit them all.
const RESTART_PAUSE: Duration = Duration::from_millis(500);

/// Actor that restarts after a panic.
///
/// The message that it was handling is lost. `restarting` removes all waiters from its state, and
/// then `started` runs again.
pub(super) trait Restart: Supervised + Actor<Context = Context<Self>> {
    /// Kind of the actor, for the count of restarts.
    const KIND: ActorKind;
}

/// Number of a zone's actors that pause before their restart.
#[derive(Clone, Debug, Default)]
pub(super) struct Paused(Arc<AtomicUsize>);

/// One of the [`Paused`] actors, until this is dropped.
struct OnePaused<'a>(&'a AtomicUsize);

impl Paused {
    pub(super) fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    fn begin(&self) -> OnePaused<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        OnePaused(&self.0)
    }
}

impl Drop for OnePaused<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Starts an actor on this thread. After a panic it restarts at once.
pub(super) fn start<A: Restart>(actor: A) -> Addr<A> {
    let context = Context::new();
    let address = context.address();
    actix_rt::spawn(run(context.into_future(actor), None));
    address
}

/// Starts the actor that `make` creates on `worker`.
///
/// After a panic it restarts at once, or after a pause if the previous panic was very recent.
pub(super) fn start_on<A: Restart>(
    worker: &ArbiterHandle,
    paused: Paused,
    make: impl FnOnce() -> A + Send + 'static,
) -> Addr<A> {
    let (sender, receiver) = channel::channel(MAILBOX);
    worker.spawn_fn(move || {
        let running = Context::with_receiver(receiver).into_future(make());
        actix_rt::spawn(run(running, Some(paused)));
    });
    Addr::new(sender)
}

/// Returns the task of an actor. It restarts the actor after each panic.
///
/// `paused` counts its pauses; `None`: it never pauses.
fn run<A: Restart>(
    mut running: ContextFut<A, Context<A>>,
    paused: Option<Paused>,
) -> impl Future<Output = ()> {
    static RESTARTS: Throttle = Throttle::new();
    let mut last_panic: Option<Moment> = None;
    async move {
        // A panic may leave the state half changed, but the state is replaced before it is used.
        while let Err(panic) = AssertUnwindSafe(&mut running).catch_unwind().await {
            count_restart(A::KIND);
            let now = clock::now();
            if let Some(hidden) = RESTARTS.show(now) {
                tracing::error!(
                    actor = A::KIND.label(),
                    panic = message(&*panic),
                    hidden,
                    "an actor panicked: it restarts, and its waiters get 503"
                );
            }
            if !running.restart() {
                return;
            }
            let before = last_panic.replace(now);
            if let Some(paused) = &paused
                && before.is_some_and(|before| now.since(before) < REPEATED_WITHIN)
            {
                let _counted = paused.begin();
                // Boxed to keep the task of an actor small.
                Box::pin(sleep(RESTART_PAUSE)).await;
            }
        }
    }
}
