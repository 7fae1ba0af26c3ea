//! Progress of a request at the gate of its origin, and the key and plan that it has there.
//!
//! The gate limits all requests to an origin. `gate` sets the progress, `record` logs it.

use std::time::Duration;

use limit::Moment;

use crate::gate::GateRejection;
use crate::observe::metrics::GateRejected;
use crate::zone::Key;

/// State of a request at the gate of its origin.
pub(super) enum GateProgress {
    /// Waiting since this instant. Also the final state if the client disconnects.
    Waiting(Moment),
    /// Passed after this wait.
    Passed(Duration),
    /// Rejected by the gate.
    ///
    /// Boxed: most requests are not rejected, and each waiting request reserves the size of the
    /// largest variant.
    Rejected(Box<RejectedAtGate>),
    /// Passed, could not be sent, and waits again since this instant.
    ///
    /// The instant lies earlier by the first wait: so both waits count, and the time between them,
    /// at the origin, does not.
    Held(Moment),
    /// Waited too long for an origin that could not be reached. The charges of its zones stay.
    HeldTooLong(Box<RejectedAtGate>),
}

/// Rejection of a request at a gate.
pub(super) struct RejectedAtGate {
    pub(super) rejection: GateRejection,
    /// Time that the request had waited at the gate.
    pub(super) waited: Duration,
}

impl GateProgress {
    /// Returns the state of a request that the gate rejected after this wait.
    pub(super) fn rejected_after(waited: Duration, rejection: GateRejection) -> Self {
        Self::Rejected(Box::new(RejectedAtGate { rejection, waited }))
    }

    /// Returns the wait of the request, until `now` if it still waits.
    pub(super) fn waited(&self, now: impl FnOnce() -> Moment) -> Duration {
        match self {
            Self::Waiting(since) | Self::Held(since) => now().since(*since),
            Self::Passed(waited) => *waited,
            Self::Rejected(rejected) | Self::HeldTooLong(rejected) => rejected.waited,
        }
    }

    /// Returns the reason for a rejection; `None` if the request was not rejected.
    pub(super) fn rejection_reason(&self) -> Option<GateRejected> {
        match self {
            Self::Rejected(rejected) | Self::HeldTooLong(rejected) => {
                Some(rejected.rejection.reason)
            }
            Self::Waiting(_) | Self::Passed(_) | Self::Held(_) => None,
        }
    }
}

/// Key and plan whose share of a gate a request uses.
#[derive(Clone)]
pub(super) struct KeyAndPlan {
    /// Empty if the origin has no `share` zone.
    pub(super) key: Key,
    /// Index of the plan of the key in that zone, if it has one.
    pub(super) plan: Option<usize>,
}
