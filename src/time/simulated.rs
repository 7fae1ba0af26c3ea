use std::fmt;

use futures_util::future::LocalBoxFuture;

use crate::limit::Moment;

/// The clock and the timer of one gateway in a simulation.
pub(crate) trait SimulatedTime: fmt::Debug {
    /// The present moment on the gateway's clock.
    fn now(&self) -> Moment;

    /// Waits until the gateway's clock shows `moment`.
    fn sleep_until(&self, moment: Moment) -> LocalBoxFuture<'static, ()>;
}
