//! Tests of a restart with `state`: the next process continues from the previous one's state.

mod chain;
mod costs;
mod file;
mod load;
mod restart;
mod streams;

pub use chain::*;

use crate::support::{MS, Origin, one_zone};

fn zone(origin: &Origin) -> String {
    one_zone(origin, "5r/s", "burst = 30")
}

/// Content of the file besides its server.
type Rest = fn(&Origin) -> String;
