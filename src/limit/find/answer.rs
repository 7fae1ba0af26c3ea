//! Events of responses, from which an experiment learns how an origin behaves at a rate.

use std::time::Duration;

/// Part of a response that is timed, from the instant at which the origin has the whole request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Until the response head has arrived.
    Head,
    /// Until the last byte has arrived.
    Whole,
}

/// Event of a request that was sent to the origin.
///
/// A request has at least one event. One with a response has a `Head` and then one of the others.
/// Responses that never end (streams, tunnels) have only a `Head`, and an objective for whole
/// responses ignores them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerEvent {
    /// The head of the response has arrived.
    Head {
        /// Duration at the origin.
        took: Duration,
        /// Status of the response.
        status: u16,
    },
    /// The last byte of the response has arrived.
    Whole {
        /// Duration at the origin, without the time in which the client did not read.
        took: Duration,
        /// Status of the response.
        status: u16,
    },
    /// The request could not be sent, or its response was cut off or timed out.
    Failed {
        /// Whether the head had arrived.
        had_head: bool,
    },
    /// The client disconnected, so the end of the response is unknown.
    Abandoned {
        /// Whether the head had arrived.
        had_head: bool,
        /// Duration at the origin.
        ///
        /// If it is longer than the objective allows, the client has seen a slow response.
        took: Duration,
    },
}

impl AnswerEvent {
    /// Returns whether no later event concerns this part of the response.
    pub(super) fn ends(self, part: Part) -> bool {
        match self {
            Self::Head { .. } => part == Part::Head,
            Self::Whole { .. } => part == Part::Whole,
            Self::Failed { had_head } | Self::Abandoned { had_head, .. } => {
                !had_head || part == Part::Whole
            }
        }
    }
}
