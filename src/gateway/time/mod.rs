//! Time: the clock, deadlines, the lag of clients behind a minimum rate, and a worker's timer.

pub mod clock;
pub mod deadline;
pub mod lag;
pub mod pacer;
#[cfg(test)]
pub(crate) mod simulated;
