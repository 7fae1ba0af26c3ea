//! What would other numbers do? Replays the last arrivals at a zone, and changes nothing.

mod differs;
mod rates;
mod replayed;
mod wanted;

pub(crate) use self::differs::differs;
pub(super) use self::rates::advise;
pub(crate) use self::replayed::replay;
pub(crate) use self::wanted::Wanted;
