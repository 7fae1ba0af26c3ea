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
