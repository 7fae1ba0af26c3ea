//! Time: the clock, deadlines, the lag of clients, and the precise timer of a worker.

pub mod clock;
pub mod deadline;
pub mod lag;
pub mod pacer;
#[cfg(test)]
pub(crate) mod simulated;
