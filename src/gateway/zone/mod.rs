//! The actors: which actor owns which bucket, and which messages it takes.
//!
//! ```text
//! Zone ──Join──▶ ZoneSupervisor (one a zone and worker) ──PendingJoin──▶ KeyActor (one a key)
//!   ▲                                                                          │ Waiter
//!   └───────────────── Grant or Rejection, through a oneshot ──────────────────┘
//! ```
//!
//! A message to an actor is a call of one of its methods, which its mailbox keeps in order
//! (`SupervisorAddress`, `KeyCall`).
//!
//! Requests of the supervisor's own thread call it instead, and get their answer at once unless
//! they wait (`supervisor/here.rs`).
//!
//! A request that finds an empty bucket passes at the supervisor: a key has an actor only once one
//! of its requests finds a level.
//!
//! A key lives on one worker. Its supervisor there is the only holder of the key actor's address.
//! So the joins of a key are handled in order, settings arrive in order, and no lookup races with
//! parking or evicting.

mod answer;
mod arrivals;
mod handle;
mod heavy;
mod join;
mod joining;
mod key;
mod overrides;
mod restart;
mod shards;
mod snapshot;
mod stats;
mod steering;
mod store_link;
mod supervisor;
#[cfg(test)]
mod tests;
mod turn;

pub use crate::store::{SharedBy, StoreHealth, StoreRefusal, store_result};
pub use answer::{Charge, Grant, Outlook, Rejection};
pub use arrivals::{Arrival, Arrivals};
pub use handle::Zone;
pub use heavy::{HeavyKey, HeavyKeys, HeavyName};
pub use join::{Join, Key, NEW_KEYS, Waiters, next_ticket};
pub use join::{SavedKey, TurnToCome};
pub use joining::{Joined, Joining};
pub use overrides::{MAX_KEYS, Override, Overrides};
pub use stats::{KeyState, Order, PlacesElsewhere, Top, ZoneStats};
#[cfg(test)]
pub(crate) use supervisor::Crash;
pub use turn::take_places;
pub use turn::{OccupiedPlace, Turn, UsedTurn};
