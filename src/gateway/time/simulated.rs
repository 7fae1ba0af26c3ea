use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use futures_util::future::LocalBoxFuture;
use limit::Moment;

/// The clock and the timer of one gateway in a simulation.
pub(crate) trait SimulatedTime: fmt::Debug {
    /// The present moment on the gateway's clock.
    fn now(&self) -> Moment;

    /// Waits until the gateway's clock shows `moment`.
    fn sleep_until(&self, moment: Moment) -> LocalBoxFuture<'static, ()>;
}

thread_local! {
    static STEPPED: Cell<Option<i64>> = const { Cell::new(None) };
    static HERE: RefCell<Option<Rc<dyn SimulatedTime>>> = const { RefCell::new(None) };
}

/// The clock of the gateway whose tasks this thread runs, in place of the machine's.
pub(super) fn here() -> Option<Rc<dyn SimulatedTime>> {
    HERE.with_borrow(Clone::clone)
}

/// Puts another clock in place of this thread's. Returns the one before.
pub(crate) fn replace(time: Option<Rc<dyn SimulatedTime>>) -> Option<Rc<dyn SimulatedTime>> {
    HERE.replace(time)
}

/// How many nanoseconds the wall clock of this thread's test has stepped ahead.
pub(super) fn stepped() -> Option<i64> {
    STEPPED.get()
}

/// Lets the wall clock of this thread's test step by `seconds`.
pub(crate) fn step_wall(seconds: i64) {
    STEPPED.set(Some(seconds * 1_000_000_000));
}
