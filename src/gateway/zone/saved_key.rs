use limit::{Onward, Rate, SavedAccount, Ticket, ToCome};

use super::join::Key;

/// What a zone keeps of a key when its process ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedKey {
    /// The key's bytes.
    pub key: Key,
    /// The rate under which it was charged.
    pub rate: Rate,
    /// What it was charged; `None` if that has drained, and only that the key is known matters.
    pub account: Option<SavedAccount>,
}

/// A request that waits for its turn when its process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnToCome {
    /// The same in each zone in which the request waits.
    pub ticket: Ticket,
    /// Where it goes on to.
    pub onward: Onward,
    /// When its turn comes, and what it counts for.
    pub to_come: ToCome,
}
