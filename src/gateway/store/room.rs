//! Call of a gateway to a waiting room that several gateways share, and the reply.

use std::time::Duration;

use limit::{Lottery, LotteryKeys, Moment, RoomCounts, RoomLimits, RoomSnapshot, to_whole};
use serde::{Deserialize, Serialize};

use super::Error;
use super::script::{Script, ScriptCall};
use crate::time::clock;

/// Call of a gateway to a room, with all operations since its last call.
#[derive(Clone, Debug)]
pub struct RoomCall<'a> {
    /// Name of the room.
    pub room: &'a str,
    /// Limits in the gateway's file or of an override, and since when, on its wall clock.
    pub limits: (RoomLimits, Moment),
    /// Id of the room if it is new.
    pub life: u64,
    /// Last drawn number and last called position that the gateway knows.
    pub known: (u64, u64),
    /// Number of lotteries that it knows.
    pub lotteries: usize,
    /// Keys of the lottery if one begins now.
    pub keys: LotteryKeys,
    /// Operations, in order.
    pub ops: &'a [RoomOp],
    /// Time of the call. `None` means now, on Redis's clock; only tests set it.
    pub at: Option<Moment>,
}

/// Operation of a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoomOp {
    /// Draws a number for a visitor.
    Draw,
    /// Notes that a visitor who may be called is there.
    Come {
        /// Position in the queue.
        position: u64,
        /// Number of the visitor.
        number: u64,
        /// Whether the first answer to this was lost, so that the visitor may be inside already.
        is_again: bool,
    },
    /// Notes a request of a visitor with a session.
    Touch {
        /// Number of the visitor.
        number: u64,
        /// Whether the gateway knows that the visitor was inside.
        is_sure: bool,
        /// Time since the request.
        ago: Duration,
    },
    /// Notes when a visitor was asked to poll again.
    PollDue {
        /// Position in the queue.
        position: u64,
        /// Time until the next poll.
        after: Duration,
    },
    /// Calls this number of visitors by hand.
    Call(u64),
    /// Sends away all visitors who wait or are called.
    Empty,
    /// Reserves the numbers that were drawn while the store was unavailable.
    Mark {
        /// Id of the outage.
        outage: u32,
        /// Number of drawn numbers.
        count: u64,
    },
    /// Asks where the numbers begin that were drawn in an outage.
    Marked(u32),
}

/// Result of a [`RoomOp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoomDone {
    /// Drawn number, and whether its visitor is inside at once.
    Drawn(u64, bool),
    /// Time of the call on Redis's clock; `None`: the visitor was not called, or came too late.
    Came(Option<Moment>),
    /// Whether it is true, or a count; `None`: there is none.
    Count(Option<u64>),
}

/// Reply to a [`RoomCall`].
#[derive(Clone, Debug, PartialEq)]
pub struct RoomReply {
    /// Time at which the script ran, on Redis's clock.
    pub now: Moment,
    /// Id of the room, the same at all gateways.
    pub life: u64,
    /// State of the room after the operations.
    pub snapshot: RoomSnapshot,
    /// Results; `None`: nothing was done, because the gateway must know the lotteries first.
    pub done: Option<Vec<RoomDone>>,
}

/// Argument of the script, as JSON. Durations and times are in milliseconds.
#[derive(Serialize)]
struct Argument {
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<f64>,
    since: f64,
    sessions: u64,
    interval: f64,
    idle: f64,
    claim: f64,
    opens: f64,
    paused: bool,
    life: String,
    drawn: u64,
    called: u64,
    lotteries: usize,
    keys: Vec<String>,
    ops: Vec<serde_json::Value>,
}

/// Reply of the script, as JSON. Times are in milliseconds.
#[derive(Deserialize)]
struct Reply {
    now: f64,
    life: String,
    drawn: u64,
    called: u64,
    emptied: u64,
    inside: u64,
    pending: u64,
    open: bool,
    counts: [u64; 7],
    #[serde(default)]
    lotteries: Vec<(u64, u64, Vec<String>)>,
    #[serde(default)]
    results: Vec<serde_json::Value>,
    #[serde(default)]
    done: bool,
}

impl ScriptCall for RoomCall<'_> {
    const SCRIPT: Script = Script::Room;
    type Reply = RoomReply;

    /// Names of its keys, all in one slot of a cluster.
    fn keys(&self) -> Vec<Vec<u8>> {
        let name = |part| format!("room:{{{}}}.{ROOM_FORM}:{part}", self.room).into_bytes();
        ["counters", "inside", "called", "polls"].map(name).into()
    }

    fn packed(&self) -> Vec<u8> {
        let (limits, since) = self.limits;
        let argument = Argument {
            at: self.at.map(millis),
            since: millis(since),
            sessions: limits.max_sessions(),
            interval: span(limits.interval()),
            idle: span(limits.idle),
            claim: span(limits.claim),
            opens: limits
                .opens
                .map_or(0.0, |opens| millis(clock::to_wall(opens))),
            paused: limits.is_paused,
            life: self.life.to_string(),
            drawn: self.known.0,
            called: self.known.1,
            lotteries: self.lotteries,
            keys: self.keys.iter().map(ToString::to_string).collect(),
            ops: self.ops.iter().map(RoomOp::packed).collect(),
        };
        serde_json::to_vec(&argument).unwrap_or_default()
    }

    fn read(&self, text: &[u8]) -> Option<Result<RoomReply, Error>> {
        RoomReply::read(text, self.ops).map(Ok)
    }
}

/// Version of a room's state in Redis, a part of the names of its keys.
const ROOM_FORM: u8 = 1;

impl RoomOp {
    fn packed(&self) -> serde_json::Value {
        use serde_json::json;
        match self {
            Self::Draw => json!(["d"]),
            Self::Come {
                position,
                number,
                is_again,
            } => json!(["p", position, number, is_again]),
            Self::Touch {
                number,
                is_sure,
                ago,
            } => json!(["t", number, is_sure, span(*ago)]),
            Self::PollDue { position, after } => json!(["u", position, span(*after)]),
            Self::Call(count) => json!(["c", count]),
            Self::Empty => json!(["e"]),
            Self::Mark { outage, count } => json!(["m", outage.to_string(), count]),
            Self::Marked(outage) => json!(["r", outage.to_string()]),
        }
    }

    fn read(&self, value: &serde_json::Value) -> Option<RoomDone> {
        let number = value.as_f64();
        Some(match self {
            Self::Draw => {
                let number = whole(value.get(0)?.as_f64()?)?;
                RoomDone::Drawn(number, value.get(1)?.as_f64()? > 0.0)
            }
            Self::Come { .. } => {
                let at = number.filter(|at| *at > 0.0);
                RoomDone::Came(at.and_then(moment))
            }
            // A negative number stands for none.
            _ => RoomDone::Count(whole(number?)),
        })
    }
}

impl RoomReply {
    /// Reads a reply; `None` if it is not a reply of the script to these operations.
    fn read(text: &[u8], ops: &[RoomOp]) -> Option<Self> {
        let reply: Reply = serde_json::from_slice(text).ok()?;
        let [walked_in, drew, called, came, lost, left, sent_away] = reply.counts;
        let done = if reply.done {
            if reply.results.len() != ops.len() {
                return None;
            }
            let done = ops.iter().zip(&reply.results).map(|(op, it)| op.read(it));
            Some(done.collect::<Option<Vec<_>>>()?)
        } else {
            None
        };
        let lotteries = reply.lotteries.into_iter();
        let lotteries = lotteries.map(|(first, count, keys)| {
            let keys = keys.iter().map(|key| key.parse().ok());
            let keys = keys.collect::<Option<Vec<u64>>>()?.try_into().ok()?;
            Some(Lottery { first, count, keys })
        });
        Some(Self {
            now: moment(reply.now)?,
            life: reply.life.parse().ok()?,
            snapshot: RoomSnapshot {
                drawn: reply.drawn,
                called: reply.called.min(reply.drawn),
                emptied: reply.emptied,
                inside: reply.inside,
                pending: reply.pending,
                is_open: reply.open,
                counts: RoomCounts {
                    walked_in,
                    drew,
                    called,
                    came,
                    lost,
                    left,
                    sent_away,
                },
                lotteries: lotteries.collect::<Option<_>>()?,
            },
            done,
        })
    }
}

/// Converts to milliseconds, because numbers that the script writes have 14 digits.
fn millis(moment: Moment) -> f64 {
    (moment.as_nanos() / 1_000_000) as f64
}

/// Converts a duration to milliseconds.
fn span(span: Duration) -> f64 {
    span.as_secs_f64() * 1000.0
}

fn moment(millis: f64) -> Option<Moment> {
    Some(Moment::from_nanos(whole(millis)?.checked_mul(1_000_000)?))
}

/// Converts a whole number; `None` if it is negative or too large.
fn whole(number: f64) -> Option<u64> {
    (0.0..9e15).contains(&number).then(|| to_whole(number))
}
