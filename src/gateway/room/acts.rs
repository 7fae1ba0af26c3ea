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
        let call = |room: &mut WaitingRoom, keys| room.call(count, keys, now);
        self.act(call, RoomOp::Call(count)).await
    }

    /// Sends away all waiting and all called visitors. Visitors with a session stay.
    ///
    /// Returns the number sent away; `None`: the store does not answer.
    pub async fn empty(&self, now: Moment) -> Option<u64> {
        let empty = |room: &mut WaitingRoom, keys| room.empty(keys, now);
        self.act(empty, RoomOp::Empty).await
    }

    /// Acts on the room: calls `in_memory` for a room in memory, else runs `in_store` in the store.
    ///
    /// Returns the number of visitors concerned; `None`: the store does not answer.
    async fn act(
        &self,
        in_memory: impl FnOnce(&mut WaitingRoom, LotteryKeys) -> u64,
        in_store: RoomOp,
    ) -> Option<u64> {
        {
            let mut state = self.lock();
            let keys = state.lottery;
            if let RoomStore::Here(room) = &mut state.store {
                return Some(in_memory(room, keys));
            }
        }
        match self.run_op(in_store).await? {
            RoomDone::Count(count) => count,
            RoomDone::Drawn(..) | RoomDone::Came(_) => None,
        }
    }
}
