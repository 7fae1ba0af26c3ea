//! Many gateways, the network and the store in one process, on a virtual time, all from one seed.
//!
//! The zones, the store links and the scripts are the real ones. What is simulated is around them:
//!
//! ```text
//! scenario ── what a seed makes happen
//!    │
//!    ├──▶ client ──▶ gateway (zones, batcher, pacer on a clock of its own) ──▶ network ──▶ store
//!    ├──▶ faults                                                                            │
//!    └──▶ invariants ◀── joins, departures, rejections ◀── what the scripts were asked ◀────┘
//! ```
//!
//! Everything runs on one thread in a [`World`](world::World), so the same seed gives the same
//! steps. A seed that fails prints its last steps, and how to run it alone.
//!
//! `DRIP_SEEDS=5000` runs so many seeds, `DRIP_SEED=42` one.

mod client;
mod clock;
mod gateway;
mod invariants;
mod network;
mod random;
mod redis;
mod run;
mod scenario;
mod script_call;
mod store;
mod suffer;
#[cfg(test)]
mod tests;
mod world;
