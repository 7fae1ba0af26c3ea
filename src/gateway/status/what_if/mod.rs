//! What would other numbers do? Replays the last arrivals at a zone, and changes nothing.

mod differs;
mod other_numbers;
mod rates;
mod replayed;

pub(crate) use self::differs::differs;
pub(crate) use self::other_numbers::OtherNumbers;
pub(super) use self::rates::advise;
pub(crate) use self::replayed::replay;
