//! The *store*: Redis, in which gateways share buckets, origins and waiting rooms.
//!
//! It makes the decisions of [`limit`]. A *join* is a request of a zone that asks for a verdict. A
//! *slot* is a departure time on a schedule. A *permit* is the right to run one request.
//!
//! | module | content |
//! |---|---|
//! | `link` | the way of all users to the store: connection, outages and clock of one worker |
//! | `health` | outages and refusals, as all workers see them |
//! | `client`, `connection`, `bounded_connection`, `socket` | the connection, down to bytes |
//! | `probe`, `timeout`, `unanswered_key` | what happens if Redis does not answer |
//! | `refusal` | classes of Redis's errors |
//! | `operation`, `calls`, `reply`, `answer`, `stored_state` | joins and refunds of keys |
//! | `grid` | slots of an origin |
//! | `permits`, `key_permits` | permits of an origin, and of keys |
//! | `backoff` | what gateways have learned about an origin |
//! | `room` | a waiting room |
//! | `clock` | the difference of Redis's clock to this gateway's |
//! | `script` | the Lua scripts |
//! | `during_outage`, `report`, `api` | what users see |
//!
//! A decision is made by a Lua script, so it is atomic. It uses Redis's own clock, so the gateways'
//! clocks need not agree. A batch of joins is one round trip: a pipeline of scripts, called by
//! their hashes. The script returns its findings, and the functions of `limit` compute the verdict
//! from them: the same reason, to the same nanosecond, as in memory.
//!
//! **Calls.** The costs in Redis are the call, the reading and the writing, not the arithmetic. So
//! one call is for up to 64 keys and contains all joins of a key in a batch: the key is read once
//! and written once. Equal joins are sent as a number. The reply says how many of them were
//! accepted, and from which level and slot on. States, calls and replies are packed numbers at
//! fixed offsets. In a cluster each key is a call, because its keys are on several nodes.
//!
//! **Form.** The first byte of a state is its form, which is also a part of its key's name
//! ([`form`]). So gateways of two versions do not read each other's states.
//!
//! **Resolution.** The clock of Redis has a resolution of microseconds. So joins arrive at whole
//! microseconds, and `max_wait` is cut to whole microseconds. Everything else is exact: levels are
//! kept in the ticks of [`Rate`](limit::Rate), in whole numbers below 2^53. A rate that needs
//! longer numbers has no [`StoreRate`]. Rates of weeks with decimals are kept in coarser ticks
//! where that is exact. A retune to such a rate rounds the level down to these ticks, which is less
//! than a microsecond's worth.
//!
//! **The schedule.** All gateways share one schedule per leaky bucket, with slots one interval
//! apart. Each accepted join gets a slot, and the reply contains its time. A gateway keeps its
//! waiters in FIFO order and its slots in order of time: the first waiter takes the first slot.
//! When a waiter leaves, each later waiter takes the slot before its own, and the **last** slot is
//! [refunded](Store::refund). If it is also the schedule's last slot, the schedule then ends before
//! it. Otherwise the slot is free, and the next join of any gateway gets it instead of one at the
//! end. No slot is assigned twice. A slot in the past is not refunded, because its departure is
//! spent. The in-memory queue can move all waiters up, so it refunds more in that case.
//!
//! **Settling.** If an admitted request cost less than its charge, the difference is
//! [refunded](Charge::too_much). If it cost more, the difference is a join with a limit that
//! nothing [exceeds](Limit::unlimited): it takes slots at the end of the schedule. The waiters of
//! its gateway take these slots, and leave as many of their first slots unused. So no departure is
//! added, and waiters of other gateways keep their slots.
//!
//! **The grid of an origin** is one more key with its own script. Gateways [claim](Claim) the slots
//! of one stream of departures, in proportion to the weight of their waiters.
//!
//! **A pool of permits** is one more key with its own script. Gateways [lease](PermitsCall) permits
//! of an origin. Permits of a gateway that vanished stay withheld.
//!
//! **The running requests of a zone's key** are counted in one more key with its own script. A
//! gateway reports how many permits it has, and how many it asks for ([`InFlightCalls`]).
//!
//! **The learned state** of an origin that gateways share is one key with its own script. It stores
//! what a gateway reports, unless it has a state that this gateway does not know ([`BackoffCall`]).
//!
//! **A waiting room** is four keys with one script. A gateway asks it for all that its visitors did
//! since the last call ([`RoomCall`]).
//!
//! **The rate in force** is the rate of the gateway whose file changed last ([`StoreRate::new`]'s
//! `since`). A join with an older rate does not change it: the join is decided by the rate in
//! force, and the answer says so. The answer also contains since when the rate is in force, in
//! Redis's time. Waiters from before that instant continue at
//! `since + (due - since) * new interval / old interval`, which keeps all gateways in step.

mod answer;
pub(crate) mod api;
mod backoff;
mod bounded_connection;
mod calls;
mod client;
mod clock;
mod connection;
mod during_outage;
mod grid;
mod health;
mod key_permits;
mod link;
mod operation;
mod permits;
mod probe;
mod refusal;
mod reply;
pub(crate) mod report;
mod room;
mod script;
#[cfg(test)]
pub(crate) mod simulated;
mod socket;
mod stored_state;
mod timeout;
mod unanswered_key;

pub use answer::{Charge, InForce, Retuned, StoreAnswer};
pub use backoff::BackoffCall;
pub use client::Store;
pub use clock::{StoreClock, Trip};
pub use config::redis::{StoreRate, Url};
pub use during_outage::during_outage;
pub use grid::{Claim, ClaimReply};
pub use health::{StoreHealth, store_result};
pub use key_permits::{InFlightCalls, KeyCall};
pub use link::{Link, LinkUser};
pub use permits::PermitsCall;
pub use room::{RoomCall, RoomDone, RoomOp, RoomReply};
pub use script::{BACKOFF_FORM, GRID_FORM, IN_FLIGHT_FORM, PERMITS_FORM, form};
pub use timeout::within;

use limit::{Algorithm, Limit, Moment};

/// Join: a request that asks for a verdict.
#[derive(Clone, Copy, Debug)]
pub struct Join<'a> {
    /// Zone's name and key: the name in Redis after the [`Store`]'s prefix.
    pub key: &'a [u8],
    /// Algorithm of the zone.
    pub algorithm: Algorithm,
    /// Rate of the zone in this gateway's file.
    pub pace: &'a StoreRate,
    /// Limit of the route.
    pub limit: Limit,
    /// Arrival of the request. `None` means now, on Redis's clock; only tests set it.
    pub at: Option<Moment>,
}

impl Join<'_> {
    /// Returns the limit in the form that is sent to the script.
    ///
    /// Its ceiling, which `above_burst` raises, is computed with the gateway's own rate, because
    /// the gateway does not know the rate in force yet: it may be that of another gateway's file.
    /// The answer of the script must be read with the same ceiling.
    fn sent_limit(&self) -> Limit {
        self.limit.with_ceiling_at(self.pace.rate())
    }
}

/// Refund of an unused charge.
#[derive(Clone, Copy, Debug)]
pub struct Refund<'a> {
    /// Name of the key, as in its [`Join`].
    pub key: &'a [u8],
    /// Algorithm, as in its [`Join`].
    pub algorithm: Algorithm,
    /// Rate, as in its [`Join`].
    pub pace: &'a StoreRate,
    /// Charge from the join's [`StoreAnswer`].
    pub charge: Charge,
    /// Time of the refund, as in [`Join`].
    pub at: Option<Moment>,
}

/// Change of the rate in this gateway's file, for a key that has waiters.
///
/// Other keys learn the rate from their next join.
#[derive(Clone, Copy, Debug)]
pub struct Retune<'a> {
    /// Name of the key, as in the [`Join`]s of the waiters.
    pub key: &'a [u8],
    /// New rate.
    pub pace: &'a StoreRate,
}

/// Reason why the store made no decision.
///
/// A join that was [late](Self::Late) may have been charged nevertheless. Its key is then paced too
/// slowly once, never too fast.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no connection, or it broke.
    #[error("cannot reach the store: {0}")]
    Unreachable(String),
    /// The answer is not from a Redis: another protocol, or a reply that is far too large.
    #[error("{0}")]
    NotRedis(String),
    /// No answer came in time.
    #[error("the store did not answer in time")]
    Late,
    /// Redis accepts no writes.
    ///
    /// Its memory is full, it is a replica or still loading, or it wants another password.
    #[error("the store accepts no writes: {0}")]
    NotWritable(String),
    /// Redis does not allow this user to run the scripts or a command in them, or has renamed it.
    #[error("the store does not allow the command: {0}")]
    NotAllowed(String),
    /// Redis refused only this operation, for example because its key has another type.
    #[error("the store refused: {0}")]
    Refused(String),
    /// The answer does not come from one of the scripts.
    #[error("the store's answer is invalid")]
    InvalidReply,
    /// The call has panicked.
    #[error("the call failed")]
    Panicked,
}

impl Error {
    /// Returns the error for a key that is used for something else, in Redis's own words.
    fn key_taken() -> Self {
        Self::Refused("WRONGTYPE: something else has this key".to_owned())
    }

    /// Returns the error for a call about permits that changed nothing.
    fn call_ignored() -> Self {
        Self::Refused("a later call came before, or the pool has too many gateways".to_owned())
    }

    /// Returns whether the store as a whole is unavailable, not only one of its keys or scripts.
    ///
    /// A command that is not allowed is no outage, because other commands and scripts may be
    /// allowed.
    pub fn is_outage(&self) -> bool {
        !matches!(self, Self::Refused(_) | Self::NotAllowed(_))
    }

    /// Returns whether the answer is not from a Redis. Such a server is probed less often.
    pub fn is_foreign(&self) -> bool {
        matches!(self, Self::NotRedis(_) | Self::InvalidReply)
    }

    /// Returns whether the store answered, so that the error is a refusal.
    pub fn is_answer(&self) -> bool {
        !matches!(self, Self::Unreachable(_) | Self::Late | Self::Panicked)
    }

    /// Returns the same error without Redis's quotes, which may contain the name of a key.
    pub fn without_names(&self) -> Self {
        match self {
            Self::NotAllowed(text) => Self::NotAllowed(without_quoted(text)),
            Self::Refused(text) => Self::Refused(without_quoted(text)),
            other => other.clone(),
        }
    }

    /// Returns the remedy by an operator, as a part of a message.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Unreachable(_) | Self::Late => "start Redis, or repair the network to it",
            Self::NotWritable(_) => "make Redis accept writes",
            Self::NotAllowed(_) => {
                "allow EVAL, EVALSHA and the commands of the scripts in Redis, under their own names and for this user and prefix"
            }
            Self::Refused(text) if text.contains("WRONGTYPE") => {
                "something else has the key: delete it in Redis, or set another redis.prefix"
            }
            Self::Refused(_) => "read the log of Redis",
            Self::Panicked => "see the log for a panic",
            Self::NotRedis(_) | Self::InvalidReply => "check that url of [redis] leads to a Redis",
        }
    }
}

/// Returns a text without the part between its first and its last quote.
///
/// That part contains the key, which may itself contain quotes. Redis 6 uses backquotes as quotes.
fn without_quoted(text: &str) -> String {
    const QUOTES: [char; 3] = ['\'', '`', '"'];
    match (text.find(QUOTES), text.rfind(QUOTES)) {
        (Some(first), Some(last)) if first < last => {
            format!("{}'...'{}", &text[..first], &text[last + 1..])
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_without_names_has_no_quotes_of_redis() {
        for (said, shown) in [
            (
                "NOPERM: no permissions to access the 'drip:z:it's me' key",
                "NOPERM: no permissions to access the '...' key",
            ),
            (
                "unknown command `EVALSHA`, with args beginning with: `1f`, `alice`, ",
                "unknown command '...', ",
            ),
            (
                "WRONGTYPE: wrong kind of value",
                "WRONGTYPE: wrong kind of value",
            ),
        ] {
            let shown = Error::Refused(shown.to_owned());
            assert_eq!(Error::Refused(said.to_owned()).without_names(), shown);
        }
        assert_eq!(Error::Late.without_names(), Error::Late);
    }
}
