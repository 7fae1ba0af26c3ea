//! A restart with `state`: the next process goes on where the one before stops.

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

/// What the file has besides its server.
type Rest = fn(&Origin) -> String;
