//! The decisions of [`limit`] made in Redis: gateways share a bucket per key.
//!
//! A decision is made by a Lua script, so it is atomic. It uses Redis's own clock, so the gateways'
//! clocks need not agree. A batch of joins is one round trip: a pipeline of scripts, called by
//! their hashes. The script returns what it found, and the functions of `limit` compute the
//! verdict from it: the same reason, to the same nanosecond, as in memory.
//!
//! **Calls.** What costs Redis is the call, the reading and the writing, not the arithmetic. So one
//! call is for up to 64 keys, and all joins of a key in a batch are in it: the key is read once and
//! written once. Equal joins are a number; the reply says how many of them were accepted, and from
//! which level and place on. States, calls and replies are packed numbers at fixed offsets. In a
//! cluster each key is a call, because its keys are on several nodes.
//!
//! **Form.** The form of a state is told by its first byte and is a part of its key's name
//! ([`form`]), so gateways of two versions do not read each other's states.
//!
//! **Resolution.** Redis tells time in microseconds, so joins arrive at whole microseconds and
//! `max_wait` is cut to whole microseconds. All else is exact: levels are kept in the ticks of
//! [`Rate`](limit::Rate), in whole numbers below 2^53. A rate that needs longer numbers has
//! no [`Pace`]. Rates of weeks with decimals are kept in coarser ticks where that loses nothing. A
//! retune to such a rate rounds the level down to these ticks, which is less than a microsecond's
//! worth.
//!
//! **The schedule.** All gateways share one schedule per leaky bucket, with places one interval
//! apart. Each accepted join gets a place and is told its time. A gateway keeps its waiters in
//! FIFO order and its times in order of time: the first waiter takes the first time. So when a
//! waiter leaves, each waiter behind it takes the time before its own, and the **last** time is
//! the one to [give back](Store::refund). If it is also the schedule's last time, the schedule
//! ends before it. Otherwise the place is free, and the next join of any gateway gets it instead
//! of one at the end. No time is handed out twice. A place whose time has passed is not given
//! back, because its departure is spent. The in-memory queue can move all waiters up, so it gives
//! back more in that case.
//!
//! **Settling.** What a used turn cost less is [given back](Charge::too_much). What it cost more is
//! a join with a limit that nothing [exceeds](Limit::unlimited): it takes places at the end of the
//! schedule. The waiters of its gateway take these, and leave as many of their first ones unused.
//! So no departure is added, and those of other gateways keep their times.
//!
//! **The grid of an origin** is one more key, with a script of its own: gateways [claim](Claim) the
//! slots of one stream of departures, in turns by the weight of what waits at each.
//!
//! **A pool of places** is one more key with a script of its own: gateways [borrow](PlacesCall) places
//! at an origin under a lease, and those of a gateway that vanished stay withheld.
//!
//! **The running requests of a key** are counted in one more key, with a script of its own: a gateway
//! tells how many places it has and wants ([`InFlightCalls`]).
//!
//! **What gateways have learned** of an origin that they share is one key, with a script of its own that
//! stores what is told it unless it has something that the gateway does not know ([`BackoffCall`]).
//!
//! **A waiting room** is four keys with a script of its own, which a gateway asks for all that its
//! visitors did since the last time ([`RoomCall`]).
//!
//! **The rate in force** is the rate of the gateway whose file changed last ([`Pace::new`]'s
//! `since`). A join with an older rate does not change it: the join is decided by the rate in
//! force, and the answer says so. The answer also says since when, in Redis's time. Waiters from
//! before then continue at `since + (due - since) * new interval / old interval`, which keeps all
//! gateways in step.

mod answer;
mod backoff;
mod bounded;
mod calls;
mod client;
mod clock;
mod connection;
mod grid;
mod health;
mod key_places;
mod link;
mod operation;
mod patience;
mod places;
mod refusal;
mod reply;
mod room;
mod script;
mod shared_by;
#[cfg(test)]
pub(crate) mod simulated;
mod socket;
mod stored_state;
mod unanswered;

pub use answer::{Charge, InForce, Retuned, StoreAnswer};
pub use backoff::BackoffCall;
pub use client::Store;
pub use clock::{StoreClock, Trip};
pub use config::redis::{BadUrl, Pace, UnsupportedRate, Url};
pub use grid::{Claim, Grant};
pub use health::{StoreHealth, StoreRefusal, store_result};
pub use key_places::InFlightCalls;
pub use link::{Link, LinkUser};
pub use patience::within;
pub use places::PlacesCall;
pub use room::{RoomCall, RoomDone, RoomOp, RoomReply};
pub use script::{BACKOFF_FORM, GRID_FORM, IN_FLIGHT_FORM, PLACES_FORM, form};
pub use shared_by::SharedBy;

use limit::{Algorithm, Limit, Moment};

/// A request that asks for a verdict.
#[derive(Clone, Copy, Debug)]
pub struct Join<'a> {
    /// The zone's name and the key: the name in Redis after the [`Store`]'s prefix.
    pub key: &'a [u8],
    /// The zone's algorithm.
    pub algorithm: Algorithm,
    /// The zone's rate in this gateway's file.
    pub pace: &'a Pace,
    /// The route's limit.
    pub limit: Limit,
    /// When the request arrives. `None` means now, on Redis's clock; only tests set it.
    pub at: Option<Moment>,
}

impl Join<'_> {
    /// The limit as the script is sent it: with places for held requests by the gateway's own rate.
    ///
    /// The rate in force may be that of another gateway's file. The script decides before this
    /// gateway knows, so its answer must be read by the same ceiling.
    fn sent_limit(&self) -> Limit {
        self.limit.with_ceiling_at(self.pace.rate())
    }
}

/// An unused charge that is given back.
#[derive(Clone, Copy, Debug)]
pub struct Refund<'a> {
    /// As in its [`Join`].
    pub key: &'a [u8],
    /// As in its [`Join`].
    pub algorithm: Algorithm,
    /// As in its [`Join`].
    pub pace: &'a Pace,
    /// From the join's [`StoreAnswer`].
    pub charge: Charge,
    /// As in [`Join`].
    pub at: Option<Moment>,
}

/// A new rate in this gateway's file, for a key that has waiters.
///
/// Other keys learn the rate from their next join.
#[derive(Clone, Copy, Debug)]
pub struct Retune<'a> {
    /// As in the [`Join`]s of the waiters.
    pub key: &'a [u8],
    /// The new rate.
    pub pace: &'a Pace,
}

/// Why the store made no decision.
///
/// A join that was [late](Self::Late) may have been charged nevertheless. Its key is then paced
/// too slowly once, never too fast.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no connection, or it broke.
    #[error("cannot reach the store: {0}")]
    Unreachable(String),
    /// What answers sends what no Redis sends: another protocol, or a reply that is far too large.
    #[error("{0}")]
    NotRedis(String),
    /// No answer came in time.
    #[error("the store did not answer in time")]
    Late,
    /// Redis takes no writes.
    ///
    /// Its memory is full, it is a replica or still loading, or it wants another password.
    #[error("the store takes no writes: {0}")]
    NotWritable(String),
    /// Redis does not let this user run the scripts, or a command in them, or has other names for
    /// them.
    #[error("the store does not allow it: {0}")]
    NotAllowed(String),
    /// Redis refused this operation alone, for example because its key has another type.
    #[error("the store refused: {0}")]
    Refused(String),
    /// The answer does not come from one of the scripts.
    #[error("the store's answer is invalid")]
    InvalidReply,
}

impl Error {
    /// Something else has the key. In Redis' own words where it tells.
    fn taken() -> Self {
        Self::Refused("WRONGTYPE: something else has this key".to_owned())
    }

    /// A pool of places did nothing.
    fn too_late() -> Self {
        Self::Refused("a later call came before, or the pool has too many gateways".to_owned())
    }

    /// Whether the store as a whole is unavailable, rather than one of its keys or scripts.
    ///
    /// What is not allowed is no outage: a write without a script may be allowed, and so may the
    /// script of another algorithm.
    pub fn is_outage(&self) -> bool {
        !matches!(self, Self::Refused(_) | Self::NotAllowed(_))
    }

    /// Whether what answers is no Redis that works, so that it is tried less and less often.
    pub fn is_foreign(&self) -> bool {
        matches!(self, Self::NotRedis(_) | Self::InvalidReply)
    }

    /// Whether the store answered, and said no.
    pub fn is_answer(&self) -> bool {
        !matches!(self, Self::Unreachable(_) | Self::Late)
    }

    /// The same error without what Redis quotes, which may be the name of a key.
    pub fn without_names(&self) -> Self {
        match self {
            Self::NotAllowed(text) => Self::NotAllowed(without_quoted(text)),
            Self::Refused(text) => Self::Refused(without_quoted(text)),
            other => other.clone(),
        }
    }

    /// What an operator can do about it, as a part of a message.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Unreachable(_) | Self::Late => "bring Redis or the way to it back",
            Self::NotWritable(_) => "see to it that Redis takes writes",
            Self::NotAllowed(_) => {
                "allow EVAL, EVALSHA and the commands of the scripts in Redis, under their own names and for this user and prefix"
            }
            Self::Refused(text) if text.contains("WRONGTYPE") => {
                "something else has the key: delete it in Redis, or set another redis.prefix"
            }
            Self::Refused(_) => "see what Redis says, and its log",
            Self::NotRedis(_) | Self::InvalidReply => {
                "see whether it is a Redis that answers there"
            }
        }
    }
}

/// A text without what is between its first and its last quote: a key may have quotes.
///
/// Redis 6 quotes by backquotes.
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
    fn an_error_without_names_has_nothing_that_redis_quotes() {
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
