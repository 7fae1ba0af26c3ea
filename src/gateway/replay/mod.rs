//! Replays recorded traffic by the gateway's own rules, without a server or a clock.
//!
//! `lines` reads the lines of a file, `line` parses one, and `trace` returns the requests. For each
//! request, `request_keys` finds the route and the keys, and `simulator` computes the `outcome`.
//! `spread` has quantiles of numbers.

#[cfg(test)]
mod access_log;
mod line;
mod lines;
mod outcome;
mod request_keys;
mod simulator;
mod spread;
mod trace;
mod zone_keys;

pub use line::{Form, Line, LineError, Recorded};
pub use outcome::{AtGate, Outcome};
pub use request_keys::add_to_key;
pub use simulator::Simulator;
pub use spread::Spread;
pub use trace::Trace;
pub(crate) use zone_keys::ZoneKeys;
