//! The actors: which actor owns which bucket, and which messages it takes.
//!
//! ```text
//! Zone ──Join, Leave, Refund──▶ ZoneSupervisor (one a zone and worker) ──▶ KeyActor (one a key)
//!   ▲                                                                          │
//!   └───────────────── Turn or Rejection, through a oneshot ───────────────────┘
//! ```
//!
//! A key lives on one worker. Its supervisor there is the only holder of the key actor's address.
//! So the joins of a key are handled in order, settings arrive in order, and no lookup races with
//! parking or evicting.

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
