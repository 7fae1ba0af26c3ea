//! Results of requests at their limits.

use super::label::labels;

labels! {
    /// Result of a request at its limits.
    ///
    /// The values are those of nginx's `$limit_req_status`, [`LimitStatus::Cancelled`],
    /// [`LimitStatus::RejectedElsewhere`] and [`LimitStatus::NoKey`].
    pub enum LimitStatus {
        /// It passed at once.
        Passed = "passed",
        /// It waited and had its turn.
        Delayed = "delayed",
        /// It was rejected.
        Rejected = "rejected",
        /// Dry run: it would have waited.
        DelayedDryRun = "delayed_dry_run",
        /// Dry run: it would have been rejected.
        RejectedDryRun = "rejected_dry_run",
        /// Its client left while it waited.
        Cancelled = "cancelled",
        /// Another zone or the origin's gate rejected it: its turn here was given back.
        RejectedElsewhere = "rejected_elsewhere",
        /// Its key is empty, so it is not limited.
        NoKey = "no_key",
    }
}
