//! Arithmetic of rate limiting: rates, buckets, queues. Pure functions.
//!
//! There is no clock, actor or I/O here. The caller passes the time as a [`Moment`], and a bucket
//! returns a [`Verdict`]. The live gateway, `drip simulate`, the property tests and the benches
//! call the same functions.
//! - [`Rate`] is exact: a count in a period, never rounded to a number of nanoseconds.
//! - [`Limit`] has the parameters of nginx's `limit_req` (`burst`, `delay` or `nodelay`) and more.
//! - [`Bucket`] decides on one request, as nginx's `limit_req` does, without nginx's rounding.
//! - [`Meter`] decides on one request by one of the other algorithms. These never make a request
//!   wait.
//! - [`Account`] is a bucket or a meter: the state of one key in a zone.
//! - [`Queue`] keeps the waiters of a bucket, in order of departure.
//! - [`Permits`] bounds the requests of a key that run at the same time, and keeps the waiters.
//! - [`KeyPermits`] are the permits of one gateway where several gateways share a key.
//! - [`FairQueue`] shares one stream of departures between keys.
//! - [`ClassQueue`] shares it between classes of traffic first.
//! - [`Gate`] stands in front of an origin: its pace, its permits, and the order of departures.
//! - [`Backoff`] lowers the limits of a gate while its origin is in trouble.
//! - [`find`] is the experiment that finds the highest rate at which an origin keeps its objective.
//! - [`PoolClient`] has the permits that a gateway leased from a pool of several gateways.
//! - [`HeavyHitters`] finds the keys with the most requests, rejections and waiting time.
//! - [`Lease`] keeps slots of a key that a gateway took from a store before requests need them.
//! - [`StoppableClock`] pauses everything that uses it.
//! - [`SavedAccount`] is an account in the state file.
//! - [`NewKeyBudget`] bounds the number of new keys that get buckets of their own.
//! - [`WaitingRoom`] admits visitors to an origin: sessions inside, calls, and the queue.
//! - [`Work`] learns the duration that requests of one kind take at their origin.
//! - [`Usage`] decides whether a connection may carry another request.
//! - [`ExternalSchedule`] keeps waiters whose departure times are assigned by a store.

mod account;
mod algorithm;
mod backoff;
mod bucket;
mod chain;
mod class_queue;
mod cost;
mod destination;
mod duration;
mod external_schedule;
mod fair_queue;
pub mod find;
#[cfg(test)]
mod fixtures;
mod floats;
mod gate;
mod growth;
mod heavy_hitters;
mod key_permits;
mod lease;
mod limit_req;
mod meter;
mod moment;
mod new_keys;
mod origin_time;
mod percent;
mod permits;
mod pool;
mod queue;
mod rate;
mod reuse;
mod saved;
mod stable_hash;
mod stoppable_clock;
mod verdict;
mod waiting_room;
#[cfg(feature = "serde")]
mod whole_numbers;
mod work;

pub use account::Account;
pub use algorithm::Algorithm;
pub use backoff::{
    Answer, Backoff, BackoffExchange, BackoffLimits, Cut, Cuts, GivenBack, Learned,
    LearnedInFlight, LearnedQuery, LearnedRate, LearnedReply, Lowered, SavedBackoff, SavedInFlight,
    Sent, Token,
};
pub use bucket::Bucket;
pub use class_queue::{Class, ClassPosition, ClassQueue, MAX_CLASS_WEIGHT, Share};
pub use cost::Cost;
pub use destination::{DestinationId, ExpectedRequest};
pub use duration::{parse_duration, show_duration};
pub use external_schedule::ExternalSchedule;
pub use fair_queue::{FairQueue, KeyChange, MAX_WEIGHT, Next, Position};
pub use floats::{to_float, to_whole};
pub use gate::{
    Admission, Claims, ClassDemand, Demand, Full, Gate, GateLimits, GatePosition, GridAnswer,
    KeyNews, KeyReport, Release, SavedGate, Sharing, SlotCounts, TimeoutReason, WaitLimits,
    WaitRejection, WaitTimeout,
};
pub use growth::more_room;
pub use heavy_hitters::{Heaviest, Heavy, HeavyHitters, Measure, Window};
pub use key_permits::{
    KEY_PERMITS_LEASE, KeyPermitNeeds, KeyPermits, KeyPermitsCall, KeyPermitsReply,
};
pub use lease::{Lease, LeaseAnswer, LeaseTerms, Leased};
pub use limit_req::{Delay, Limit, MAX_WAIT_ABOVE_BURST};
pub use meter::{Allowance, Meter};
pub use meter::{FixedWindow, SlidingWindowCounter, SlidingWindowLog, TokenBucket};
pub use moment::{Moment, nanos};
pub use new_keys::NewKeyBudget;
pub use origin_time::OriginTime;
pub use percent::{Percent, PercentError};
pub use permits::{Permits, Terms, changed};
pub use pool::{
    KnownMembers, LeasedPermits, PermitNeeds, PermitSource, PoolCall, PoolClient, PoolCounts,
    PoolLimits, PoolReply, WithoutPool,
};
pub use queue::{Charge, Departure, Queue, Ticket};
pub use rate::{Rate, RateError};
pub use reuse::{ReuseLimits, Usage};
pub use saved::SavedAccount;
pub use stable_hash::{mixed, stable_hash};
pub use stoppable_clock::StoppableClock;
pub use verdict::{Excess, Reason, Refusal, Verdict};
pub use waiting_room::{
    Call, Drawn, Lottery, LotteryKeys, MAX_SESSIONS, MirrorPoll, MirrorTouch, Polled, RoomCounts,
    RoomLimits, RoomMirror, RoomSnapshot, RoomState, SavedRoom, WaitingRoom, WaitingVisitor,
};
pub use work::{LearnedWork, SavedWork, Work};

/// Example of the README, which runs as a test.
#[cfg(doctest)]
#[doc = include_str!("README.md")]
struct Readme;
