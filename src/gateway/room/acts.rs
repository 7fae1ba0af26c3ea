//! What operators do with a room by hand.

use std::num::NonZeroU32;

use limit::{LotteryKeys, Moment, Rate, WaitingRoom};

use super::{Kept, OriginRoom};
use crate::store::{RoomDone, RoomOp};

/// Values in place of those of the file, for a while.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoomOverride {
    /// Whether nobody is called.
    pub is_paused: bool,
    /// The places; `Some(None)`: not bounded.
    pub sessions: Option<Option<NonZeroU32>>,
    /// The pace; `Some(None)`: as fast as places come free.
    pub admit: Option<Option<Rate>>,
    /// When it ends.
    pub until: Moment,
    /// Who set it: the name of a token, or an address.
    pub by: String,
}

/// A message to those who wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomWord {
    /// The text.
    pub text: String,
    /// When it ends.
    pub until: Moment,
}

/// What is set by hand and ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expired {
    /// Values in place of those of the file.
    Override,
    /// The message to those who wait.
    Word,
}

impl Expired {
    /// Its name in the log.
    pub fn label(self) -> &'static str {
        match self {
            Self::Override => "override",
            Self::Word => "word",
        }
    }
}

impl OriginRoom {
    /// What has ended by itself since this was asked last.
    pub fn take_expired(&self, now: Moment) -> Vec<Expired> {
        let mut state = self.lock();
        state.advance(now);
        std::mem::take(&mut state.expired)
    }

    /// Sets values in place of those of the file; `None`: the file's are in force again. Returns
    /// the override before.
    pub fn set_override(&self, new: Option<RoomOverride>, now: Moment) -> Option<RoomOverride> {
        let mut state = self.lock();
        let before = std::mem::replace(&mut state.overridden, new);
        state.apply(now);
        before
    }

    /// Sets the message to those who wait; `None`: there is none. Returns the one before.
    pub fn set_word(&self, new: Option<RoomWord>) -> Option<RoomWord> {
        std::mem::replace(&mut self.lock().word, new)
    }

    /// Calls so many of those who wait, whatever the pace is, as far as there are places. Returns
    /// how many; `None`: the store does not answer.
    pub async fn call(&self, count: u64, now: Moment) -> Option<u64> {
        if let Some(called) = self.here(|room, keys| room.call(count, keys, now)) {
            return Some(called);
        }
        self.count(RoomOp::Call(count)).await
    }

    /// Sends all away who wait or are called. Those inside stay. Returns how many; `None`: the store
    /// does not answer.
    pub async fn empty(&self, now: Moment) -> Option<u64> {
        if let Some(count) = self.here(|room, keys| room.empty(keys, now)) {
            return Some(count);
        }
        self.count(RoomOp::Empty).await
    }

    /// Does something with a room in memory; `None`: it is in the store.
    fn here<T>(&self, act: impl FnOnce(&mut WaitingRoom, LotteryKeys) -> T) -> Option<T> {
        let mut state = self.lock();
        let keys = state.lottery;
        match &mut state.kept {
            Kept::Here(room) => Some(act(room, keys)),
            Kept::Shared(_) => None,
        }
    }

    async fn count(&self, op: RoomOp) -> Option<u64> {
        match self.ask(op).await? {
            RoomDone::Count(count) => count,
            RoomDone::Drawn(..) | RoomDone::Came(_) => None,
        }
    }
}
