//! Results of visitors' requests at a waiting room, and the counts of the room.
//!
//! A visitor without a free session draws a *number*, which is in the visitor's *ticket*, and polls
//! with it. The room *calls* visitors in order: a call reserves a *session* until the visitor polls
//! again. A visitor with a session is *inside*.

use super::WaitingVisitor;
use crate::Moment;

/// Call of a visitor who has not arrived yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Instant of the call.
    pub at: Moment,
    /// Instant until which the session is reserved.
    pub until: Moment,
}

/// Totals of a room, in numbers of visitors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
pub struct RoomCounts {
    /// Visitors who entered without waiting.
    pub walked_in: u64,
    /// Visitors who drew a number.
    pub drew: u64,
    /// Visitors who were called.
    pub called: u64,
    /// Visitors who were called, and arrived in time.
    pub came: u64,
    /// Visitors who were called, and did not arrive in time.
    pub lost: u64,
    /// Visitors whose session ended.
    pub left: u64,
    /// Visitors who were sent away while they waited.
    pub sent_away: u64,
}

/// Current state of a room.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RoomState {
    /// Visitors who wait.
    pub waiting: u64,
    /// Visitors who were called and have not arrived yet.
    pub called: u64,
    /// Visitors inside.
    pub inside: u64,
    /// Measured calls per second; infinite if nothing bounds them.
    pub pace: f64,
    /// Whether the room has opened.
    pub is_open: bool,
}

/// Result of a visitor without a ticket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Drawn {
    /// The visitor gets a session with this number.
    Inside(u64),
    /// The visitor gets a ticket with this number.
    Waits(u64, WaitingVisitor),
    /// All reserved numbers are drawn: the caller must [reserve](super::WaitingRoom::reserve) more.
    NoNumber,
}

/// Result of a visitor with a ticket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Polled {
    /// The visitor was called, and gets a session with the number of the ticket.
    Inside(Call),
    /// The visitor continues to wait.
    Waits(WaitingVisitor),
    /// The visitor polls too often.
    TooOften(WaitingVisitor),
    /// All waiting visitors were sent away.
    SentAway,
    /// The ticket is not valid: it was used, its call has expired, or its number was never drawn.
    Void,
}
