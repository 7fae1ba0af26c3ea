//! The waiting room of an origin: those who come, wait, are called and go on.

mod forged;
mod opens;
mod programs;
mod protocols;
mod reload;
mod restart;

use crate::support::visitor::*;
