//! Simulates many gateways, the network and the store in one process, from one seed.
//!
//! The time is virtual. The zones, the gates, the store links and the scripts are the real ones.
//! The rest is simulated:
//!
//! ```text
//! scenario ── what happens by a seed: settings, clients, faults
//! │
//! ├──▶ client ──▶ gateway (zones, gates, links, on a clock of its own) ──▶ network ──▶ store
//! ├──▶ faults                                                                            │
//! └──▶ invariants ◀── joins, departures, rejections ◀── calls of scripts, and replies ◀───┘
//! ```
//!
//! Everything runs on one thread in a [`World`](world::World), so the same seed gives the same
//! steps. A seed that fails prints its last steps, and how to run it alone.
//!
//! A seed defines one scenario with zones, and another one with shared gates. `invariants` are the
//! rules that must hold in each. `pools`, `key_permits` and `find` are simulations of their own: of
//! permits that gateways share, of permits of keys, and of experiments that find the limits of an
//! origin.
//!
//! Everyday runs use a few random seeds, long runs thousands: see `tests/testing/search.rs`.
//! `DRIP_SEEDS=5000` runs that many seeds, `DRIP_SEED=42` a single one.

#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::float_cmp,
    reason = "counts and times of a simulation are small, and a generation is a name"
)]

mod apply_fault;
mod claim_call;
mod client;
mod clock;
mod crowd;
mod find;
mod gateway;
mod invariants;
mod key_permits;
mod network;
mod pools;
mod random;
mod redis;
mod run;
mod scenario;
mod script_call;
mod store;
mod tests;
mod world;
