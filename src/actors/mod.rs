//! The actors: who owns which bucket, and who may tell whom what.
//!
//! ```text
//! Zone ──Join, Leave, Refund──▶ ZoneSupervisor (one a zone and worker) ──▶ KeyActor (one a key in use)
//!   ▲                                                                          │
//!   └───────────────── Turn or Rejection, through a oneshot ───────────────────┘
//! ```
//!
//! A key lives on one worker. Its supervisor there is the only holder of its address, so the joins of a key are in
//! order, settings arrive in order, and nothing can race with looking up, parking or evicting.

mod census;
mod key;
mod messages;
mod published;
mod shared;
mod supervisor;
#[cfg(test)]
mod tests;
mod turn;
mod zone;

pub use census::{Census, KeyState, Order, Top};
pub use messages::{Charge, Grant, Key, Outlook, Rejection, Waiters};
pub use shared::Remote;
pub use turn::{Joining, Probing, Turn};
pub use zone::Zone;
