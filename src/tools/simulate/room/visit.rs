use std::time::Duration;

use crate::limit::Moment;

/// The way of one visitor.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimulatedVisit {
    pub(super) came: Moment,
    /// 0 before the visitor has come.
    pub(super) number: u64,
    /// Whether it comes back if it has to wait.
    pub(super) returns: bool,
    /// The wait that it was told when it came.
    pub(super) told: Option<Duration>,
    pub(super) called: Option<Moment>,
    pub(super) entered: Option<Moment>,
    /// The moment of the last request.
    pub(super) left: Option<Moment>,
}
