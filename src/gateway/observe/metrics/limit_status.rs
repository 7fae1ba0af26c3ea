/// Result of a request at its limits.
///
/// The values are those of nginx's `$limit_req_status`, [`LimitStatus::Cancelled`],
/// [`LimitStatus::RejectedElsewhere`] and [`LimitStatus::NoKey`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitStatus {
    /// It passed at once.
    Passed,
    /// It waited and had its turn.
    Delayed,
    /// It was rejected.
    Rejected,
    /// Dry run: it would have waited.
    DelayedDryRun,
    /// Dry run: it would have been rejected.
    RejectedDryRun,
    /// Its client left while it waited.
    Cancelled,
    /// Another zone or the origin's gate rejected it: its turn here was given back.
    RejectedElsewhere,
    /// Its key is empty, so it is not limited.
    NoKey,
}

impl LimitStatus {
    /// All, in their order.
    pub const ALL: [Self; 8] = [
        Self::Passed,
        Self::Delayed,
        Self::Rejected,
        Self::DelayedDryRun,
        Self::RejectedDryRun,
        Self::Cancelled,
        Self::RejectedElsewhere,
        Self::NoKey,
    ];
    /// Those of requests that have a key.
    pub(super) const OF_KEYS: [Self; 7] = [
        Self::Passed,
        Self::Delayed,
        Self::Rejected,
        Self::DelayedDryRun,
        Self::RejectedDryRun,
        Self::Cancelled,
        Self::RejectedElsewhere,
    ];

    /// The value of the label `status`, and of `limit_status` in the access log.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Delayed => "delayed",
            Self::Rejected => "rejected",
            Self::DelayedDryRun => "delayed_dry_run",
            Self::RejectedDryRun => "rejected_dry_run",
            Self::Cancelled => "cancelled",
            Self::RejectedElsewhere => "rejected_elsewhere",
            Self::NoKey => "no_key",
        }
    }
}
