use std::collections::BTreeMap;

use serde::Serialize;

use super::{FileAndNow, Plain};

/// The waiting room of an origin.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Room {
    /// Visitors who wait.
    pub waiting: u64,
    /// Those who were called and have not come yet.
    pub called: u64,
    pub inside: u64,
    /// Visitors inside at once; `None`: not bounded.
    pub sessions: FileAndNow<u64>,
    /// As in the file, such as `10r/s`; `None`: as fast as places come free.
    pub admit: FileAndNow<Plain>,
    /// Calls a second, as they are measured; `None` while nothing bounds them.
    pub pace: Option<f64>,
    /// How long a visitor will wait who comes now, in seconds; `None` if nobody waits, nobody is
    /// called, or nothing is known.
    pub wait: Option<f64>,
    /// How long the visitor waited for its call who came last after one, in seconds.
    pub front_wait: Option<f64>,
    /// Whether it has opened.
    pub open: bool,
    /// When it opens or has opened, in UTC, if the file says so.
    pub opens: Option<Plain>,
    /// Visitors by what they did or what was done: `walked_in`, `drew`, `called`, `came`, `lost`,
    /// `left`, `sent_away`. In a sample those of this second, without zeros; else all.
    pub events: BTreeMap<Plain, u64>,
    /// Requests by what they were, counted likewise.
    pub requests: BTreeMap<Plain, u64>,
    /// What is not as in the file.
    #[serde(rename = "override")]
    pub overridden: Option<RoomOverride>,
    /// What the operator tells those who wait.
    pub word: Option<RoomWord>,
}

/// What of a room is not as in the file, for a while.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RoomOverride {
    /// 0: not bounded.
    pub sessions: Option<u64>,
    /// Such as `5r/s`, or `none`.
    pub admit: Option<Plain>,
    /// Whether nobody is called.
    pub pause: bool,
    /// In UTC, and who set it.
    pub until: Plain,
    pub by: Plain,
}

/// What those who wait are told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RoomWord {
    pub word: Plain,
    /// In UTC.
    pub until: Plain,
}

/// The waiting room of an origin in one second.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RoomSample {
    #[serde(flatten)]
    pub room: Room,
    /// Of the calls that ended in the last five minutes, those whose visitors came.
    pub came_lately: u64,
    /// The others: nobody came in time.
    pub lost_lately: u64,
    /// For how many seconds nobody has been called, though visitors wait and places are free, after
    /// the time that `admit` leaves between two calls.
    pub stuck: f64,
}
