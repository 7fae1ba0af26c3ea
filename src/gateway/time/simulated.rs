//! Clocks of tests: of a gateway in a simulation, and of a pacer (a worker's precise timer).

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use futures_util::future::LocalBoxFuture;
use limit::Moment;

/// Clock and timer of one gateway in a simulation.
pub(crate) trait SimulatedTime: fmt::Debug {
    /// Returns the present instant on the gateway's clock.
    fn now(&self) -> Moment;

    /// Waits until the gateway's clock shows `moment`.
    fn sleep_until(&self, moment: Moment) -> LocalBoxFuture<'static, ()>;
}

/// Clock of a pacer in a test.
#[derive(Clone, Debug)]
pub(crate) enum TestClock {
    /// Clock that stands still until it is set.
    Virtual(Rc<Cell<Moment>>),
    /// Clock of a gateway in a simulation.
    Simulated(Rc<dyn SimulatedTime>),
}

impl TestClock {
    /// Returns the present instant.
    pub(crate) fn now(&self) -> Moment {
        match self {
            Self::Virtual(moment) => moment.get(),
            Self::Simulated(time) => time.now(),
        }
    }
}

thread_local! {
    /// Nanoseconds by which the wall clock has stepped ahead; `None`: no test has set a step.
    static STEPPED: Cell<Option<i64>> = const { Cell::new(None) };
    /// Clock of the simulated gateway whose tasks this thread runs.
    static HERE: RefCell<Option<Rc<dyn SimulatedTime>>> = const { RefCell::new(None) };
}

/// Returns the clock of the simulated gateway whose tasks this thread runs, if there is one.
pub(super) fn here() -> Option<Rc<dyn SimulatedTime>> {
    HERE.with_borrow(Clone::clone)
}

/// Replaces the clock of this thread. Returns the previous one.
pub(crate) fn replace(time: Option<Rc<dyn SimulatedTime>>) -> Option<Rc<dyn SimulatedTime>> {
    HERE.replace(time)
}

/// Returns by how many nanoseconds the wall clock of this thread's test has stepped ahead.
pub(super) fn stepped() -> Option<i64> {
    STEPPED.get()
}

/// Lets the wall clock of this thread's test step by `seconds`.
pub(crate) fn step_wall(seconds: i64) {
    STEPPED.set(Some(seconds * 1_000_000_000));
}
