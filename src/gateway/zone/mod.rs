//! Zones: the actors that own the buckets, and the messages between them.
//!
//! A zone of the file limits requests by a key, such as the client's address. Each key has a
//! bucket, and usually a queue: a request over the rate waits for its slot. To *join* is to ask a
//! zone for admission. A *shard* of a zone is its part on one worker.
//!
//! ```text
//! Zone ──Join──▶ ZoneSupervisor (one a zone and worker) ──PendingJoin──▶ KeyActor (one a key)
//!   ▲                                                                          │ Waiter
//!   └───────────────── Grant or Rejection, through a oneshot ──────────────────┘
//! ```
//!
//! A message to an actor is a call of one of its methods. The mailbox keeps the calls in order
//! (`SupervisorAddress`, `KeyCall`).
//!
//! Requests of the supervisor's own thread call it directly, without a message
//! (`supervisor/local.rs`). They get their answer at once unless they wait.
//!
//! The supervisor itself admits a request that finds an empty bucket. So a key has an actor only
//! after one of its requests has found a level.
//!
//! A key belongs to one worker, and only the supervisor there has the address of its actor. So the
//! joins of a key are handled in order, settings arrive in order, and no lookup races with parking
//! or eviction.
//!
//! | module | content |
//! |---|---|
//! | `handle`, `shards`, `parameters` | a zone for the gateway, its supervisors, their parameters |
//! | `join`, `joining`, `admission` | a request, its wait for an answer, its admission |
//! | `take_permits` | permits of a request with several limits |
//! | `pending`, `answer` | messages to the actors and their answers |
//! | `supervisor`, `key`, `restart` | the actors, and their restart after a panic |
//! | `shard`, `snapshot` | state that the actors of one supervisor share with it |
//! | `queue_depth` | counts of waiters and of requests in flight |
//! | `store_link` | the connection to the store that several gateways share |
//! | `overrides` | temporary settings from the admin port |
//! | `saved` | state of a zone and of its keys that outlives the process |
//! | `stats`, `heavy`, `arrivals` | numbers that operators can query |
//! | `api`, `report` | the API of zones; samples, metrics and rules of the headline |

mod admission;
mod answer;
pub(crate) mod api;
mod arrivals;
mod handle;
mod heavy;
mod join;
mod joining;
mod key;
mod overrides;
mod parameters;
mod pending;
mod queue_depth;
pub(crate) mod report;
mod restart;
mod saved;
mod shard;
mod shards;
mod snapshot;
mod stats;
mod store_link;
mod supervisor;
mod take_permits;
#[cfg(test)]
mod tests;

pub use crate::store::{Error as StoreError, StoreHealth, during_outage, store_result};
pub use admission::{InFlightPermit, UsedAdmission, ZoneAdmission};
pub use answer::{Charge, Grant, Prediction, Rejection};
pub use arrivals::{Arrival, Arrivals};
pub use handle::Zone;
pub use heavy::{HeavyKey, HeavyKeys, HeavyName};
pub use join::{ExpectedDeparture, Join, Key, NEW_KEYS, Waiters, next_ticket};
pub use joining::{Joined, Joining};
pub use overrides::{MAX_KEYS, Overrides, ZoneOverride, ZoneValues};
pub use saved::{KeyRecord, SavedKey, ZoneRecord};
pub use stats::{KeyState, Order, PermitsElsewhere, Top, ZoneStats};
#[cfg(test)]
pub(crate) use supervisor::Crash;
pub use take_permits::take_permits;
