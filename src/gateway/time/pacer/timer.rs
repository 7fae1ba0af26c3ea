//! Timer of a pacer (a worker's precise timer), which is set to an instant and fires once.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use limit::Moment;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

#[cfg(test)]
use super::simulated_timer::SimulatedTimer;
use crate::time::clock;
#[cfg(test)]
use crate::time::simulated::SimulatedTime;

/// Timer of the kernel or of a simulation.
#[derive(Clone, Debug)]
pub(super) enum Timer {
    /// Timerfd: the kernel's high-resolution timer.
    ///
    /// It becomes readable like a socket, so it wakes the worker's own event loop.
    Kernel(Rc<AsyncFd<OwnedFd>>),
    #[cfg(test)]
    Simulated(Rc<SimulatedTimer>),
}

impl Timer {
    /// Creates a timer of the kernel that is not set.
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // Deprecated in favour of an unsafe constructor of `AsyncFd`. Its caller promises that the
        // descriptor stays the same while it is registered. An `OwnedFd` that cannot be taken out
        // of the `Rc` meets this, but this crate allows no unsafe code.
        #[expect(deprecated)]
        let fd = AsyncFd::with_interest(fd, tokio::io::Interest::READABLE)?;
        Ok(Self::Kernel(Rc::new(fd)))
    }

    #[cfg(test)]
    pub(super) fn simulated(time: &Rc<dyn SimulatedTime>) -> Self {
        Self::Simulated(Rc::new(SimulatedTimer::new(Rc::clone(time))))
    }

    /// Sets the timer to `due`, in place of the instant before.
    pub(super) fn arm(&self, due: Moment) {
        let fd = match self {
            Self::Kernel(fd) => fd,
            #[cfg(test)]
            Self::Simulated(timer) => return timer.arm(due),
        };
        let once = Itimerspec {
            it_interval: Timespec::default(),
            it_value: clock::monotonic(due),
        };
        // The kernel refuses only a bad descriptor or a malformed time. Neither is possible here.
        let set = timerfd_settime(fd.get_ref(), TimerfdTimerFlags::ABSTIME, &once);
        debug_assert!(set.is_ok(), "{set:?}");
    }

    /// Waits until the timer fires.
    ///
    /// The kernel's timer is never read: the event loop reports each expiry once, and the next
    /// setting clears it (`timerfd_settime(2)`).
    pub(super) async fn fired(&self) -> io::Result<()> {
        match self {
            Self::Kernel(fd) => fd.readable().await?.clear_ready(),
            #[cfg(test)]
            Self::Simulated(timer) => timer.fired().await,
        }
        Ok(())
    }
}
