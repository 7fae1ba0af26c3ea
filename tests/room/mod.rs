//! The waiting room of an origin: those who come, wait, are called and go on.

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

/// The file of the rooms of gateways that follow each other.
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
