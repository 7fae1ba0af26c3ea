//! Replays recorded traffic by the gateway's own rules, without a server or a clock.

#[cfg(test)]
mod access_log;
mod key;
mod line;
mod lines;
mod simulator;
mod spread;
mod timeline;
mod trace;

pub(crate) use key::{add as add_to_key, remembered};
pub use line::{Form, Line, LineError, Recorded};
pub use simulator::{Outcome, Simulator};
pub use spread::Spread;
pub use timeline::{Join, Timeline};
pub use trace::Trace;
