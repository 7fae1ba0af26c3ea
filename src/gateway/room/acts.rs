//! Acts of operators on a waiting room: overrides, a message to visitors, calls, and emptying.

use limit::{LotteryKeys, Moment, Rate, WaitingRoom};
use serde::Serialize;

use super::{OriginRoom, RoomStore};
use crate::overrides::{Overridable, Override};
use crate::store::{RoomDone, RoomOp};

/// Override of a room.
pub type RoomOverride = Override<RoomValues>;

/// Values of a room that can be overridden. Serialized for the API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RoomValues {
    /// Maximum number of sessions, 0 if unbounded; `None`: the configured one.
    pub sessions: Option<u32>,
    /// Pace of calls; `None`: the configured one.
    ///
    /// [`Rate::UNLIMITED`]: a visitor is called as soon as a session is free.
    pub admit: Option<Rate>,
    /// Whether calling is paused.
    pub pause: bool,
}

impl Overridable for RoomValues {
    fn named(&self) -> [(&'static str, Option<String>); 3] {
        let sessions = self.sessions;
        [
            (
                "sessions",
                sessions.map(|count| format!("sessions {count}")),
            ),
            ("admit", self.admit.map(|admit| format!("admit {admit}"))),
            ("pause", self.pause.then(|| "paused".to_owned())),
        ]
    }
}

/// Message of an operator to the waiting visitors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomWord {
    /// Text of the message.
    pub text: String,
    /// Instant at which the message expires.
    pub until: Moment,
}

impl OriginRoom {
    /// Takes the acts that have expired since the last call: `override` or `word`.
    pub fn take_expired(&self, now: Moment) -> Vec<&'static str> {
        let mut state = self.lock();
        state.advance(now);
        std::mem::take(&mut state.expired)
    }

    /// Sets the override. `None`: the configured values are effective again.
    ///
    /// Returns the previous override.
    pub fn set_override(&self, new: Option<RoomOverride>, now: Moment) -> Option<RoomOverride> {
        let mut state = self.lock();
        let before = std::mem::replace(&mut state.overridden, new);
        state.apply(now);
        before
    }

    /// Sets the message to waiting visitors. `None`: no message. Returns the previous one.
    pub fn set_word(&self, new: Option<RoomWord>) -> Option<RoomWord> {
        std::mem::replace(&mut self.lock().word, new)
    }

    /// Calls up to `count` waiting visitors, regardless of the pace, while sessions are free.
    ///
    /// Returns the number called; `None`: the store does not answer.
    pub async fn call(&self, count: u64, now: Moment) -> Option<u64> {
        if let Some(called) = self.here(|room, keys| room.call(count, keys, now)) {
            return Some(called);
        }
        self.count(RoomOp::Call(count)).await
    }

    /// Sends away all waiting and all called visitors. Visitors with a session stay.
    ///
    /// Returns the number sent away; `None`: the store does not answer.
    pub async fn empty(&self, now: Moment) -> Option<u64> {
        if let Some(count) = self.here(|room, keys| room.empty(keys, now)) {
            return Some(count);
        }
        self.count(RoomOp::Empty).await
    }

    /// Runs `act` on a room in memory; `None`: the room is in the store.
    fn here<T>(&self, act: impl FnOnce(&mut WaitingRoom, LotteryKeys) -> T) -> Option<T> {
        let mut state = self.lock();
        let keys = state.lottery;
        match &mut state.kept {
            RoomStore::Here(room) => Some(act(room, keys)),
            RoomStore::Shared(_) => None,
        }
    }

    /// Runs an operation in the store and returns its count; `None`: the store does not answer.
    async fn count(&self, op: RoomOp) -> Option<u64> {
        match self.run_op(op).await? {
            RoomDone::Count(count) => count,
            RoomDone::Drawn(..) | RoomDone::Came(_) => None,
        }
    }
}
