use super::Waiting;
use crate::Moment;

/// A visitor who was called and has not come yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// When.
    pub at: Moment,
    /// Until when its place is kept.
    pub until: Moment,
}

/// What has happened in a room, in numbers of visitors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoomCounts {
    /// Let in without waiting.
    pub walked_in: u64,
    /// Drew a number.
    pub drew: u64,
    /// Called.
    pub called: u64,
    /// Called, and came in time.
    pub came: u64,
    /// Called, and did not come in time.
    pub lost: u64,
    /// Inside, and left.
    pub left: u64,
    /// Sent away while they waited.
    pub sent_away: u64,
}

/// The present state of a room.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RoomState {
    /// Visitors who wait.
    pub waiting: u64,
    /// Those who were called and have not come yet.
    pub called: u64,
    /// Those inside.
    pub inside: u64,
    /// Calls a second, as they are measured; infinite if nothing bounds them.
    pub pace: f64,
    /// Whether it has opened.
    pub is_open: bool,
}

/// What a visitor without a ticket gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Drawn {
    /// A session with this number.
    Inside(u64),
    /// A ticket with this number.
    Waits(u64, Waiting),
    /// No number is left until more are reserved.
    NoNumber,
}

/// What a visitor with a ticket gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Polled {
    /// A session with the number of the ticket. The visitor was called so.
    Inside(Call),
    /// It waits on.
    Waits(Waiting),
    /// It asks too often.
    TooOften(Waiting),
    /// All who waited were sent away.
    SentAway,
    /// The ticket was used, its turn is lost, or it was never drawn.
    Void,
}
