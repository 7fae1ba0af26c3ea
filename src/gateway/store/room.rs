//! A waiting room that several gateways share: what one asks of it, and the replies.

use std::time::Duration;

use limit::{Lottery, LotteryKeys, Moment, RoomCounts, RoomLimits, RoomSnapshot};
use serde::{Deserialize, Serialize};

use super::Error;
use super::script::{Script, ScriptCall};
use crate::time::clock;

/// What a gateway asks of a room since its last call.
#[derive(Clone, Debug)]
pub struct RoomCall<'a> {
    /// The name of the room.
    pub room: &'a str,
    /// The limits in the gateway's file or by hand, and since when, on its wall clock.
    pub limits: (RoomLimits, Moment),
    /// What the room is called if it is new.
    pub life: u64,
    /// The last number and the last called place that the gateway knows.
    pub known: (u64, u64),
    /// How many lotteries it knows.
    pub lotteries: usize,
    /// The keys of one that begins now.
    pub keys: LotteryKeys,
    /// In order.
    pub ops: &'a [RoomOp],
    /// When it asks. `None` means now, on Redis's clock; only tests set it.
    pub at: Option<Moment>,
}

/// One thing that is asked of a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoomOp {
    /// A visitor draws a number.
    Draw,
    /// A visitor is there that may be called.
    Come {
        /// Its place in line.
        place: u64,
        /// Its number.
        number: u64,
        /// Whether it was asked before and the answer was lost: it may be inside by now.
        is_again: bool,
    },
    /// A visitor with a session asks.
    Touch {
        /// Its number.
        number: u64,
        /// Whether the gateway knows that it was inside.
        is_sure: bool,
        /// How long ago it asked.
        ago: Duration,
    },
    /// A visitor was told to ask again after this time.
    Told {
        /// Its place in line.
        place: u64,
        /// The time from now on.
        after: Duration,
    },
    /// So many are called by hand.
    Call(u64),
    /// All are sent away who wait or are called.
    Empty,
    /// So many numbers were drawn while the store was out.
    Mark {
        /// What the outage is called.
        outage: u32,
        /// How many.
        count: u64,
    },
    /// Where the numbers are that were drawn in an outage.
    Marked(u32),
}

/// What became of a [`RoomOp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoomDone {
    /// The number that was drawn, and whether its visitor is inside at once.
    Drawn(u64, bool),
    /// When the visitor was called, on Redis's clock; `None`: it was not, or it lost its turn.
    Came(Option<Moment>),
    /// Whether it is true, or how many it was; `None`: there is none.
    Count(Option<u64>),
}

/// The reply to a [`RoomCall`].
#[derive(Clone, Debug, PartialEq)]
pub struct RoomReply {
    /// When the script ran, on Redis's clock.
    pub now: Moment,
    /// What the room is called: the same at all gateways.
    pub life: u64,
    /// What the room is by then.
    pub snapshot: RoomSnapshot,
    /// For each op; `None`: nothing was done, because the gateway must know the lotteries first.
    pub done: Option<Vec<RoomDone>>,
}

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

    /// All in one slot of a cluster.
    fn keys(&self) -> Vec<Vec<u8>> {
        let name = |part| format!("room:{{{}}}.{ROOM_FORM}:{part}", self.room).into_bytes();
        ["counters", "inside", "called", "polls"].map(name).into()
    }

    fn packed(&self) -> Vec<u8> {
        let (limits, since) = self.limits;
        let argument = Argument {
            at: self.at.map(millis),
            since: millis(since),
            sessions: limits.places(),
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

/// The version of a room's state in Redis, a part of the names of its keys.
const ROOM_FORM: u8 = 1;

impl RoomOp {
    fn packed(&self) -> serde_json::Value {
        use serde_json::json;
        match self {
            Self::Draw => json!(["d"]),
            Self::Come {
                place,
                number,
                is_again,
            } => json!(["p", place, number, is_again]),
            Self::Touch {
                number,
                is_sure,
                ago,
            } => json!(["t", number, is_sure, span(*ago)]),
            Self::Told { place, after } => json!(["u", place, span(*after)]),
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
            // Below zero: there is none.
            _ => RoomDone::Count(whole(number?)),
        })
    }
}

impl RoomReply {
    /// Reads a reply; `None` if it is not one of the script to these ops.
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

/// In milliseconds: numbers that the script writes have 14 digits.
fn millis(moment: Moment) -> f64 {
    (moment.as_nanos() / 1_000_000) as f64
}

fn span(span: Duration) -> f64 {
    span.as_secs_f64() * 1000.0
}

fn moment(millis: f64) -> Option<Moment> {
    Some(Moment::from_nanos(whole(millis)?.checked_mul(1_000_000)?))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is checked"
)]
fn whole(number: f64) -> Option<u64> {
    (0.0..9e15).contains(&number).then_some(number as u64)
}
