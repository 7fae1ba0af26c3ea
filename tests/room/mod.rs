//! Tests of the waiting room of an origin: visitors arrive, wait, are called and enter.

mod forged;
mod opens;
mod programs;
mod protocols;
mod reload;
mod restart;

use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;

use crate::gateway::state::Chain;
use crate::support::Gateway;
use crate::support::visitor::*;

/// Returns the file with the rooms of a chain of gateways.
fn rooms_file(chain: &Chain) -> PathBuf {
    chain.folder.path().join("drip.state.rooms")
}

fn stop(mut gateway: Gateway) {
    Chain::stop(&mut gateway);
}

fn kill(mut gateway: Gateway) {
    gateway.signal(Signal::KILL);
    gateway.wait(Duration::from_secs(20));
}
