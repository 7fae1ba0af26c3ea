//! The arithmetic of rate limiting: rates, buckets, queues. Pure functions.
//!
//! No clock, no actor, no I/O: the caller passes the time as a [`Moment`], and a bucket returns a
//! [`Verdict`]. The live gateway, `drip simulate`, the property tests and the benches call the
//! same functions.
//!
//! - [`Rate`] is exact: a count in a period, never rounded to a number of nanoseconds.
//! - [`Bucket`] decides one request, as nginx's `limit_req` does, without nginx's rounding.
//! - [`Meter`] decides one request by one of the other algorithms. These never make a request
//!   wait.
//! - [`Account`] is a bucket or a meter: what a zone keeps for a key.
//! - [`Queue`] keeps the requests that a bucket told to wait, in order of departure.
//! - [`Places`] bounds how many requests of a key run at the same time, and keeps those that wait.
//! - [`KeyPlaces`] are those that a gateway has where several share the places of a key.
//! - [`FairQueue`] shares one stream of departures between keys.
//! - [`ClassQueue`] shares it between classes of traffic first.
//! - [`Gate`] is what stands in front of an origin: its pace, its places, and whose turn it is.
//! - [`Backoff`] lowers what a gate lets through while its origin is in trouble.
//! - [`find`]: the experiment that finds the highest rate at which an origin keeps its objective.
//! - [`HeavyHitters`] finds the keys with the most requests, rejections and waiting time.
//! - [`Lease`] keeps places of a key that were taken ahead from a store.
//! - [`StoppableClock`] pauses what runs on it.
//! - [`SavedAccount`] is what of an account outlives its process.
//! - [`NewKeyBudget`] bounds how many unknown keys get buckets of their own.
//! - [`WaitingRoom`] is a counter before an origin: who is inside, who is called, and who waits.
//! - [`Work`] learns how long requests of one kind take their origin.
//! - [`Usage`] says whether a connection may carry another request.
//! - [`ExternalSchedule`] keeps waiters whose departure times are assigned elsewhere.

mod account;
mod algorithm;
mod backoff;
mod bucket;
mod chain;
mod class_queue;
mod cost;
mod duration;
mod external_schedule;
mod fair_queue;
pub mod find;
mod floats;
mod gate;
mod growth;
mod heavy_hitters;
mod key_places;
mod lease;
mod meter;
mod moment;
mod new_keys;
mod onward;
mod origin_time;
mod percent;
mod places;
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
pub use algorithm::{Algorithm, UnknownAlgorithm};
pub use backoff::{
    Answer, Ask, Backoff, BackoffExchange, BackoffLimits, Cut, Cuts, GivenBack, Learned,
    LearnedPlaces, LearnedRate, LearnedReply, Lowered, SavedBackoff, SavedPlaces, Sent, Token,
};
pub use bucket::Bucket;
pub use class_queue::{Class, ClassPosition, ClassQueue, MAX_CLASS_WEIGHT, Share};
pub use cost::Cost;
pub use duration::{parse_duration, show_duration};
pub use external_schedule::ExternalSchedule;
pub use fair_queue::{FairQueue, KeyChange, MAX_WEIGHT, Next, Position};
pub use floats::{to_float, to_whole};
pub use gate::{
    Admission, Claims, ClassDemand, Demand, Full, Gate, GateLimits, GatePosition, GivesUp,
    GridAnswer, InVain, KeyNews, KeyReport, Release, SavedGate, Sharing, SlotCounts, WaitLimits,
    WaitTimeout,
};
pub use growth::more_room;
pub use heavy_hitters::{Heaviest, Heavy, HeavyHitters, Measure, Window};
pub use key_places::{KEY_PLACES_LEASE, KeyPlaces, KeyPlacesCall, KeyPlacesReply, PlacesWanted};
pub use lease::{FromLease, Lease, LeaseTerms, Leased};
pub use meter::{Allowance, Meter};
pub use meter::{FixedWindow, SlidingWindowCounter, SlidingWindowLog, TokenBucket};
pub use moment::Moment;
pub use new_keys::NewKeyBudget;
pub use onward::{Onward, ToCome};
pub use origin_time::OriginTime;
pub use percent::{Percent, PercentError};
pub use places::{Places, Terms, changed};
pub use pool::{
    Borrower, Borrowing, KnownMembers, LentPlaces, PlaceNeeds, PoolCall, PoolCounts, PoolLimits,
    PoolReply, WithoutPool,
};
pub use queue::{Charge, Departure, Queue, Ticket};
pub use rate::{Rate, RateError};
pub use reuse::{ReuseLimits, Usage};
pub use saved::SavedAccount;
pub use stable_hash::{mixed, stable_hash};
pub use stoppable_clock::StoppableClock;
pub use verdict::{Delay, Excess, Limit, MAX_WAIT_ABOVE_BURST, Reason, Refusal, Verdict};
pub use waiting_room::{
    Call, Drawn, Lottery, LotteryKeys, MAX_SESSIONS, MirrorPoll, MirrorTouch, Polled, RoomCounts,
    RoomLimits, RoomMirror, RoomSnapshot, RoomState, SavedRoom, Waiting, WaitingRoom,
};
pub use work::{LearnedWork, SavedWork, Work, WorkSource};

/// The example of the README, which runs as a test.
#[cfg(doctest)]
#[doc = include_str!("README.md")]
struct Readme;
