use std::sync::Arc;

use super::clock::ClockOffset;
use super::settings::SharedSettings;
use crate::status::views::{Origin, Plain, Sample, Zone};

/// What was read of one gateway at a time.
///
/// What an older gateway does not tell is empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    /// What tells its process from all others.
    pub(crate) id: Plain,
    /// Its own name.
    pub(crate) name: Plain,
    pub(crate) version: Plain,
    pub(crate) settings: Arc<SharedSettings>,
    pub(crate) clock: Option<ClockOffset>,
    pub(crate) zones: Vec<Zone>,
    pub(crate) origins: Vec<Origin>,
    /// Its last second.
    pub(crate) sample: Option<Sample>,
}

/// Why a gateway could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unread {
    pub(crate) kind: UnreadKind,
    pub(crate) why: String,
}

/// What kept a gateway from being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnreadKind {
    /// It does not answer.
    Silent,
    /// It answers, but does not tell what is asked.
    Refuses,
    /// What answers is no drip gateway.
    Strange,
}

impl UnreadKind {
    /// The state of the gateway in the picture.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Silent => "silent",
            Self::Refuses => "refuses",
            Self::Strange => "strange",
        }
    }
}
