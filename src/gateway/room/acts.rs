//! Acts of operators on a waiting room: overrides, a message to visitors, calls, and emptying.

use std::num::NonZeroU32;

use limit::{LotteryKeys, Moment, Rate, WaitingRoom};

use super::{OriginRoom, RoomStore};
use crate::store::{RoomDone, RoomOp};

/// Override of a room's configured values until an instant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoomOverride {
    /// Whether calling is paused.
    pub is_paused: bool,
    /// Maximum number of sessions; `Some(None)`: unbounded.
    pub sessions: Option<Option<NonZeroU32>>,
    /// Pace of calls; `Some(None)`: a visitor is called as soon as a session is free.
    pub admit: Option<Option<Rate>>,
    /// Instant at which the override expires.
    pub until: Moment,
    /// Author of the override: the name of a token, or an address.
    pub by: String,
}

/// Message of an operator to the waiting visitors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomWord {
    /// Text of the message.
    pub text: String,
    /// Instant at which the message expires.
    pub until: Moment,
}

/// Kind of act of an operator that has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expired {
    /// The override of configured values.
    Override,
    /// The message to waiting visitors.
    Word,
}

impl Expired {
    /// Name of the act in the log.
    pub fn label(self) -> &'static str {
        match self {
            Self::Override => "override",
            Self::Word => "word",
        }
    }
}

impl OriginRoom {
    /// Takes the acts that have expired since the last call.
    pub fn take_expired(&self, now: Moment) -> Vec<Expired> {
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
