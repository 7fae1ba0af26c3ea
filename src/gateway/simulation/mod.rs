//! Many gateways, the network and the store in one process, on a virtual time, all from one seed.
//!
//! The zones, the gates, the store links and the scripts are the real ones. What is simulated is around
//! them:
//!
//! ```text
//! scenario ── what a seed makes happen
//!    │
//!    ├──▶ client ──▶ gateway (zones, gates, links, on a clock of its own) ──▶ network ──▶ store
//!    ├──▶ faults                                                                            │
//!    └──▶ invariants ◀── joins, departures, rejections ◀── what the scripts were asked ◀────┘
//! ```
//!
//! Everything runs on one thread in a [`World`](world::World), so the same seed gives the same
//! steps. A seed that fails prints its last steps, and how to run it alone.
//!
//! A seed stands for a scenario with zones, and for another one with gates that gateways share.
//!
//! Everyday runs take a few random seeds, long ones thousands: see `tests/testing/search.rs`. `DRIP_SEEDS=5000`
//! runs so many, `DRIP_SEED=42` one.

#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::float_cmp,
    reason = "counts and times of a simulation are small, and a generation is a name"
)]

mod claim_call;
mod client;
mod clock;
mod crowd;
mod find;
mod gateway;
mod invariants;
mod key_places;
mod network;
mod pools;
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
