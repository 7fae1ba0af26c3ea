//! Recorded traffic, judged by the gateway's own rules: no server, no clock.

mod line;
mod simulator;

pub use line::{Form, Line, LineError, Recorded};
pub use simulator::{Outcome, Simulator};
