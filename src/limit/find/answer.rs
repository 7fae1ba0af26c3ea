use std::time::Duration;

/// What of an answer is timed, from the moment at which the origin has the whole request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Until its head has arrived.
    Head,
    /// Until its last byte has arrived.
    Whole,
}

/// What happens to a request that was sent to the origin.
///
/// A request has one of these at least; one with an answer has a `Head` and then one of the others.
/// Answers that never end (streams, tunnels) have a `Head` alone, and an objective for whole
/// answers is none for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerEvent {
    /// The head of its answer has arrived.
    Head {
        /// Time of the origin.
        took: Duration,
        /// Status of the answer.
        status: u16,
    },
    /// The last byte of its answer has arrived.
    Whole {
        /// Time of the origin, without that in which the client took nothing.
        took: Duration,
        /// Status of the answer.
        status: u16,
    },
    /// It could not be sent, or its answer broke off or did not come in time.
    Failed {
        /// Whether the head had arrived.
        had_head: bool,
    },
    /// Its client has left, so nobody knows how it would have ended.
    Abandoned {
        /// Whether the head had arrived.
        had_head: bool,
        /// Time of the origin. A client that left later than the objective allows has seen a slow
        /// answer.
        took: Duration,
    },
}

impl AnswerEvent {
    /// Whether it is the last that is heard of this part of the answer.
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
