//! Call of a gateway to a waiting room that several gateways share through Redis, and the reply.
//!
//! A visitor *draws* a number. Lotteries turn numbers into positions in the queue. A visitor is
//! *called* when a session is free, and has a session (is *inside*) after the next request.

use std::time::Duration;

use limit::{Lottery, LotteryKeys, Moment, RoomLimits, RoomSnapshot, to_whole};
use serde::Deserialize;
use serde_json::{Value, json};

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
    /// Id that the room gets if it is new.
    pub life: u64,
    /// Last drawn number and last called position that the gateway knows.
    pub known: (u64, u64),
    /// Number of lotteries that the gateway knows.
    pub lotteries: usize,
    /// Keys for a lottery that begins with this call.
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
    /// Records that a visitor who may be called is there.
    Come {
        /// Position in the queue.
        position: u64,
        /// Number of the visitor.
        number: u64,
        /// Whether an earlier answer to this operation was lost. The visitor may be inside already.
        is_again: bool,
    },
    /// Records a request of a visitor with a session.
    Touch {
        /// Number of the visitor.
        number: u64,
        /// Whether the gateway knows that the visitor was inside.
        is_sure: bool,
        /// Time since the request.
        ago: Duration,
    },
    /// Records when a visitor was asked to poll again.
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
    /// Asks for the first number of those drawn in the outage with this id.
    Marked(u32),
}

/// Result of a [`RoomOp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoomDone {
    /// Drawn number, and whether its visitor is inside at once.
    Drawn(u64, bool),
    /// Time of the call on Redis's clock; `None`: the visitor was not called, or came too late.
    Came(Option<Moment>),
    /// Result of any other operation: a count, or 1 for true and 0 for false; `None`: there is
    /// none.
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
    /// Results; `None`: nothing was done, because the gateway did not know all lotteries.
    pub done: Option<Vec<RoomDone>>,
}

/// Reply of the script, as JSON. Times are in milliseconds.
#[derive(Deserialize)]
struct Reply {
    now: f64,
    life: String,
    #[serde(flatten)]
    snapshot: RoomSnapshot,
    /// First number, count and keys of each lottery.
    #[serde(default)]
    lotteries: Vec<(u64, u64, Vec<String>)>,
    #[serde(default)]
    results: Vec<Value>,
    #[serde(default)]
    done: bool,
}

impl ScriptCall for RoomCall<'_> {
    const SCRIPT: Script = Script::Room;
    type Reply = RoomReply;

    /// Returns the names of the room's keys. They are in one slot of a cluster.
    fn keys(&self) -> Vec<Vec<u8>> {
        let name = |part| format!("room:{{{}}}.{ROOM_FORM}:{part}", self.room).into_bytes();
        ["counters", "inside", "called", "polls"].map(name).into()
    }

    /// Returns the argument as JSON. Times and durations are in milliseconds.
    fn packed(&self) -> Vec<u8> {
        let (limits, since) = self.limits;
        let opens = limits.opens.map(clock::to_wall);
        let (drawn, called) = self.known;
        let mut argument = json!({
            "since": millis(since),
            "sessions": limits.max_sessions(),
            "interval": span_millis(limits.interval()),
            "idle": span_millis(limits.idle),
            "claim": span_millis(limits.claim),
            "opens": opens.map_or(0.0, millis),
            "paused": limits.is_paused,
            "life": self.life.to_string(),
            "drawn": drawn,
            "called": called,
            "lotteries": self.lotteries,
            "keys": self.keys.map(|key| key.to_string()),
            "ops": self.ops.iter().map(RoomOp::packed).collect::<Vec<_>>(),
        });
        if let Some(at) = self.at {
            argument["at"] = millis(at).into();
        }
        argument.to_string().into_bytes()
    }

    fn read(&self, text: &[u8]) -> Option<Result<RoomReply, Error>> {
        RoomReply::read(text, self.ops).map(Ok)
    }
}

/// Version of a room's state in Redis, a part of the names of its keys.
const ROOM_FORM: u8 = 1;

impl RoomOp {
    /// Returns the operation in the form that the script reads: a letter and its parameters.
    fn packed(&self) -> Value {
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
            } => json!(["t", number, is_sure, span_millis(*ago)]),
            Self::PollDue { position, after } => json!(["u", position, span_millis(*after)]),
            Self::Call(count) => json!(["c", count]),
            Self::Empty => json!(["e"]),
            Self::Mark { outage, count } => json!(["m", outage.to_string(), count]),
            Self::Marked(outage) => json!(["r", outage.to_string()]),
        }
    }

    /// Reads the result of this operation; `None` if it is not valid.
    fn read(&self, value: &Value) -> Option<RoomDone> {
        let number = value.as_f64();
        Some(match self {
            Self::Draw => {
                let number = whole(value.get(0)?.as_f64()?)?;
                RoomDone::Drawn(number, value.get(1)?.as_f64()? > 0.0)
            }
            Self::Come { .. } => {
                let called_at = number.filter(|millis| *millis > 0.0);
                RoomDone::Came(called_at.and_then(moment))
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
        let done = if reply.done {
            Some(read_results(ops, &reply.results)?)
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
                called: reply.snapshot.called.min(reply.snapshot.drawn),
                lotteries: lotteries.collect::<Option<_>>()?,
                ..reply.snapshot
            },
            done,
        })
    }
}

/// Reads the results of these operations; `None` if one is missing or not valid.
fn read_results(ops: &[RoomOp], results: &[Value]) -> Option<Vec<RoomDone>> {
    if results.len() != ops.len() {
        return None;
    }
    let results = ops.iter().zip(results);
    results.map(|(op, result)| op.read(result)).collect()
}

/// Converts an instant to milliseconds, because numbers that the script writes have 14 digits.
fn millis(moment: Moment) -> f64 {
    (moment.as_nanos() / 1_000_000) as f64
}

/// Converts a duration to milliseconds.
fn span_millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1000.0
}

/// Converts milliseconds to an instant; `None` if they are out of range.
fn moment(millis: f64) -> Option<Moment> {
    Some(Moment::from_nanos(whole(millis)?.checked_mul(1_000_000)?))
}

/// Converts a whole number; `None` if it is negative or too large.
fn whole(number: f64) -> Option<u64> {
    (0.0..9e15).contains(&number).then(|| to_whole(number))
}
