//! The machine of a simulation: one thread, one virtual time, several hosts.
//!
//! The time is tokio's paused clock. It stands still while any task can run, and then advances to
//! the next instant that a task waits for. tokio's own timers have whole milliseconds, so this
//! module keeps the simulation's timers, to the nanosecond.

mod host;
mod sleep;
mod trace;

use std::cell::RefCell;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, select};
use tokio::time::Instant;

pub(super) use host::HostId;
use host::Hosts;
use sleep::{Sleep, Sleepers};
use trace::Trace;

use crate::time::simulated::SimulatedTime;

/// One virtual time, and the hosts whose tasks run in it.
pub(super) struct World {
    began: Instant,
    hosts: Hosts,
    sleepers: Sleepers,
    trace: Trace,
    /// Reason why the simulation has failed, if it has.
    failure: RefCell<Option<String>>,
}

impl World {
    /// Runs the future that `build` makes on the first host, until it ends or something fails.
    pub(super) fn run(build: impl FnOnce(&Rc<Self>) -> LocalBoxFuture<'static, ()>) -> Rc<Self> {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            // The simulation begins with a tick of tokio's timers.
            tokio::time::sleep(Duration::from_millis(1)).await;
            let world = Rc::new(Self {
                began: Instant::now(),
                hosts: Hosts::default(),
                sleepers: Sleepers::default(),
                trace: Trace::default(),
                failure: RefCell::default(),
            });
            // The simulation runs as long as its future has a clone of this.
            let running = Rc::new(());
            let (main, runs) = (build(&world), Rc::clone(&running));
            world.hosts.add(None);
            world.spawn(HostId::FIRST, async move {
                main.await;
                drop(runs);
            });
            while Rc::strong_count(&running) > 1 && world.failure.borrow().is_none() {
                world.step().await;
            }
            world.hosts.remove_all();
            world
        })
    }

    /// Runs all tasks that can run, then advances the time.
    async fn step(&self) {
        self.hosts.settle().await;
        let now = self.now();
        let tick = whole_millis(now) + Duration::from_millis(1);
        match self.sleepers.next() {
            Some(due) if due <= now => self.sleepers.wake_first(),
            // No timer of tokio is due before the next tick.
            Some(due) if due < tick => tokio::time::advance(due.saturating_sub(now)).await,
            // The runtime advances by whole milliseconds, so this must begin at a tick.
            _ if now > whole_millis(now) => tokio::time::advance(tick.saturating_sub(now)).await,
            next => {
                let until = next.map_or(now + Duration::from_secs(1), whole_millis);
                let sleep = pin!(tokio::time::sleep_until(self.began + until));
                select(pin!(self.hosts.wait_until_woken()), sleep).await;
            }
        }
    }

    /// Returns the time since the simulation began.
    pub(super) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Waits until the virtual time is `due`.
    pub(super) fn sleep_until(self: &Rc<Self>, due: Duration) -> Sleep {
        Sleep::new(Rc::clone(self), due)
    }

    pub(super) fn sleep(self: &Rc<Self>, span: Duration) -> Sleep {
        self.sleep_until(self.now() + span)
    }

    /// Adds a host with this clock.
    pub(super) fn add_host(&self, time: &Rc<dyn SimulatedTime>) -> HostId {
        self.hosts.add(Some(Rc::clone(time)))
    }

    /// Drops all tasks of a host, as if it lost its power.
    ///
    /// A task of the host itself must not call this.
    pub(super) fn kill(&self, host: HostId) {
        self.hosts.remove(host);
    }

    /// Stops a host like a stopped process, or lets it continue. Its clock continues.
    pub(super) fn stop(&self, host: HostId, is_stopped: bool) {
        self.hosts.stop(host, is_stopped);
    }

    /// Starts a task on a host. Nothing happens if the host was killed.
    ///
    /// A panic of the task fails the simulation.
    pub(super) fn spawn(self: &Rc<Self>, host: HostId, task: impl Future<Output = ()> + 'static) {
        let world = Rc::clone(self);
        self.hosts.spawn(host, async move {
            if let Err(panic) = AssertUnwindSafe(task).catch_unwind().await {
                let cause = crate::observe::log::message(&*panic);
                world.fail(format_args!("a task of the simulation panicked: {cause}"));
            }
        });
    }

    /// Adds a step to the trace.
    pub(super) fn note(&self, step: fmt::Arguments<'_>) {
        self.trace.add(self.now(), step);
    }

    /// Ends the simulation with a failure.
    pub(super) fn fail(&self, what: fmt::Arguments<'_>) {
        self.note(format_args!("FAILED: {what}"));
        self.failure
            .borrow_mut()
            .get_or_insert_with(|| what.to_string());
    }

    /// Returns the reason why the simulation has failed, if it has.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }

    pub(super) fn trace(&self) -> &Trace {
        &self.trace
    }
}

fn whole_millis(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}
