use super::pace::Pace;
use super::reading::{Reading, UnreadKind};
use crate::config::AdminAddress;
use crate::limit::Moment;
use crate::status::views::Plain;

/// A gateway.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// `None`: it is the one that makes the picture.
    pub(super) address: Option<AdminAddress>,
    pub(super) last: Last,
    /// Its own name, as it was last told.
    pub(super) name: Plain,
    pub(super) pace: Pace,
}

/// What was last read of a gateway.
#[derive(Clone, Debug)]
pub(super) enum Last {
    /// It was not read yet.
    Nothing,
    Reading(Box<Reading>),
    /// It could not be read.
    Unread {
        since: Moment,
        kind: UnreadKind,
        why: Plain,
    },
}

/// What a gateway that answers is called in the picture, and what was read of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named<'m> {
    pub(super) name: &'m Plain,
    pub(super) member: &'m Member,
    pub(super) reading: &'m Reading,
}

impl Member {
    /// What was read of it; `None` if it could not be read.
    pub(super) fn reading(&self) -> Option<&Reading> {
        match &self.last {
            Last::Reading(reading) => Some(reading),
            Last::Nothing | Last::Unread { .. } => None,
        }
    }
}
