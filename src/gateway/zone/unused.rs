use crate::observe::metrics::LimitStatus;

/// Why a request did not use its turn in a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unused {
    /// Its client left.
    Cancelled,
    /// Another zone or the origin's gate rejected it.
    RejectedElsewhere,
}

impl Unused {
    pub(super) fn status(self) -> LimitStatus {
        match self {
            Self::Cancelled => LimitStatus::Cancelled,
            Self::RejectedElsewhere => LimitStatus::RejectedElsewhere,
        }
    }
}
