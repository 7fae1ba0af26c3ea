//! Types of the JSON of waiting rooms.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::gate::report::sample::ConfiguredAndEffective;
use crate::room::RoomOverride;
use crate::status::plain::Plain;

/// Waiting room of an origin.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Room {
    /// Waiting visitors.
    pub waiting: u64,
    /// Visitors who were called and have not come yet.
    pub called: u64,
    /// Visitors with a session.
    pub inside: u64,
    /// Maximum number of sessions; `None`: unbounded.
    pub sessions: ConfiguredAndEffective<u64>,
    /// Pace of calls, such as `10r/s`; `None`: as fast as sessions become free.
    pub admit: ConfiguredAndEffective<Plain>,
    /// Measured calls a second; `None` while nothing bounds them.
    pub pace: Option<f64>,
    /// Predicted wait of a visitor who comes now, in seconds.
    ///
    /// `None` if no visitor waits, or if the room calls no visitors.
    pub wait: Option<f64>,
    /// Wait for the call of the last visitor who came after a call, in seconds.
    pub front_wait: Option<f64>,
    /// Whether the room has opened.
    pub open: bool,
    /// Opening time, in UTC, if the file has one.
    pub opens: Option<Plain>,
    /// Visitors by event.
    ///
    /// Events: `walked_in`, `drew`, `called`, `came`, `lost`, `left`, `sent_away`. In a sample the
    /// counts of this second, without zeros; else the totals.
    pub events: BTreeMap<Plain, u64>,
    /// Requests by kind, counted likewise.
    pub requests: BTreeMap<Plain, u64>,
    /// Override in force.
    #[serde(rename = "override")]
    pub overridden: Option<RoomOverride>,
    /// Operator's message to waiting visitors.
    pub word: Option<RoomWord>,
}

/// Operator's message to waiting visitors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RoomWord {
    /// Text of the message.
    pub word: Plain,
    /// Expiry, in UTC.
    pub until: Plain,
}

/// Sample of an origin's waiting room for one second.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RoomSample {
    /// Values that the API shows, too.
    #[serde(flatten)]
    pub room: Room,
    /// Visitors who came, of the calls that ended in the last five minutes.
    pub came_lately: u64,
    /// Calls that ended in the last five minutes without a visitor.
    pub lost_lately: u64,
    /// Time without a call, in seconds, though visitors wait and sessions are free.
    ///
    /// The interval that `admit` leaves between two calls does not count.
    pub stuck: f64,
}
