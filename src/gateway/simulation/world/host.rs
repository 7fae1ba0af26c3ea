//! The hosts of a simulation, each with its tasks.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::FutureExt;
use tokio::task::LocalSet;

use crate::time::pacer::Pacer;
use crate::time::simulated::{self, SimulatedTime};

/// A host of the simulated network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::simulation) struct HostId(usize);

impl HostId {
    /// The host of the simulation itself, with its plan, the network and the store.
    pub(in crate::simulation) const FIRST: Self = Self(0);
}

/// All hosts, each with its tasks.
#[derive(Default)]
pub(super) struct Hosts {
    /// Tasks of each host. `None` for a killed host, and for the host whose tasks run.
    tasks: RefCell<Vec<Option<LocalSet>>>,
    /// Thread-local state of each host, while none of its tasks runs.
    threads: RefCell<Vec<Thread>>,
    /// Stopped hosts: their tasks do not run.
    stopped: RefCell<BTreeSet<usize>>,
    woken: Arc<WakeFlag>,
}

/// State that a real gateway has per thread, and the simulation per host.
#[derive(Default)]
struct Thread {
    time: Option<Rc<dyn SimulatedTime>>,
    pacer: Option<Rc<Pacer>>,
}

impl Thread {
    /// Exchanges this with the thread-local state of the simulation.
    fn exchange(&mut self) {
        self.time = simulated::replace(self.time.take());
        self.pacer = Pacer::replace_here(self.pacer.take());
    }
}

/// Whether a task was woken.
#[derive(Default)]
struct WakeFlag {
    is_set: AtomicBool,
    /// Waker of the simulation itself.
    runtime: Mutex<Option<Waker>>,
}

impl Hosts {
    /// Adds a host with this clock; `None`: the host of the simulation.
    pub fn add(&self, time: Option<Rc<dyn SimulatedTime>>) -> HostId {
        let mut tasks = self.tasks.borrow_mut();
        tasks.push(Some(LocalSet::new()));
        let pacer = None;
        self.threads.borrow_mut().push(Thread { time, pacer });
        HostId(tasks.len() - 1)
    }

    /// Starts a task on a host.
    pub(super) fn spawn(&self, host: HostId, task: impl Future<Output = ()> + 'static) {
        if let Some(tasks) = &self.tasks.borrow()[host.0] {
            tasks.spawn_local(task);
        } else if host == HostId::FIRST {
            // This is the host that runs.
            tokio::task::spawn_local(task);
        }
        self.woken.is_set.store(true, Ordering::Relaxed);
    }

    /// Drops the tasks of a host.
    pub(super) fn remove(&self, host: HostId) {
        let tasks = self.tasks.borrow_mut()[host.0].take();
        // Dropped values may access other hosts.
        let mut thread = std::mem::take(&mut self.threads.borrow_mut()[host.0]);
        thread.exchange();
        drop(tasks);
        thread.exchange();
    }

    /// Stops a host, or lets it continue.
    pub(super) fn stop(&self, host: HostId, is_stopped: bool) {
        if is_stopped {
            self.stopped.borrow_mut().insert(host.0);
        } else {
            self.stopped.borrow_mut().remove(&host.0);
            Wake::wake_by_ref(&self.woken);
        }
    }

    /// Drops the tasks of all hosts, the first host's last.
    pub(super) fn remove_all(&self) {
        let count = self.tasks.borrow().len();
        for index in (0..count).rev() {
            self.remove(HostId(index));
        }
    }

    /// Runs the tasks of all hosts until each of them waits.
    pub(super) async fn settle(&self) {
        // The runtime wakes tasks that have yielded, so it must run once before the end.
        let mut idle_polls = 0;
        poll_fn(|cx| {
            self.woken.report_to(cx.waker());
            while self.woken.take() {
                idle_polls = 0;
                self.poll();
            }
            idle_polls += 1;
            if idle_polls > 1 {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// Waits until a task was woken.
    pub(super) async fn wait_until_woken(&self) {
        poll_fn(|cx| {
            self.woken.report_to(cx.waker());
            if self.woken.is_set.load(Ordering::Relaxed) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// Polls the tasks of each host once.
    fn poll(&self) {
        let waker = Waker::from(Arc::clone(&self.woken));
        let mut cx = Context::from_waker(&waker);
        let count = self.tasks.borrow().len();
        for index in 0..count {
            if self.stopped.borrow().contains(&index) {
                continue;
            }
            let tasks = self.tasks.borrow_mut()[index].take();
            if let Some(mut tasks) = tasks {
                let mut thread = std::mem::take(&mut self.threads.borrow_mut()[index]);
                thread.exchange();
                let _all_over = tasks.poll_unpin(&mut cx);
                thread.exchange();
                self.threads.borrow_mut()[index] = thread;
                self.tasks.borrow_mut()[index] = Some(tasks);
            }
        }
    }
}

impl WakeFlag {
    /// Returns whether a task was woken since the last call.
    fn take(&self) -> bool {
        self.is_set.swap(false, Ordering::Relaxed)
    }

    /// Sets the waker of the simulation.
    fn report_to(&self, waker: &Waker) {
        let mut runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        runtime
            .get_or_insert_with(|| waker.clone())
            .clone_from(waker);
    }
}

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_set.store(true, Ordering::Relaxed);
        let runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runtime) = &*runtime {
            runtime.wake_by_ref();
        }
    }
}
