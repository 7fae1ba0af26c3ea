//! Metrics of a waiting room.
//!
//! A visitor draws a number, polls until it is called, and then has a session at the origin for a
//! while. Its ticket, in a cookie, has its number.

use std::time::Duration;

use super::durations::DurationHistogram;
use super::label::{CountBy, labels};

labels! {
    /// Kind of a request at the waiting room.
    pub enum RoomRequest {
        /// From a visitor with a session.
        Session = "session",
        /// From a visitor who still waits.
        Poll = "poll",
        /// From a visitor who polls too often.
        TooOften = "too_often",
        /// First request of a visitor who was called.
        Came = "came",
        /// First request of a visitor who found a free session.
        WalkedIn = "walked_in",
        /// The visitor drew a number.
        Drew = "drew",
        /// The visitor got no number, because its client draws too many.
        DrawRefused = "draw_refused",
        /// No number was left for the visitor.
        NoNumber = "no_number",
        /// The visitor's ticket was used or lost, or its session has ended.
        Ended = "ended",
        /// The visitor's ticket or session is not of this room.
        Foreign = "foreign",
    }
}

/// Metrics of the waiting room of an origin.
#[derive(Default)]
pub struct RoomMetrics {
    /// Requests by kind.
    pub requests: CountBy<RoomRequest>,
    /// Wait from the draw of a number to its call, for visitors who came.
    pub wait: DurationHistogram,
    /// Absolute difference between that wait and the predicted one.
    pub wait_error: DurationHistogram,
}

impl RoomMetrics {
    /// Counts a request.
    pub fn count(&self, request: RoomRequest) {
        self.requests.add(request, 1);
    }

    /// Records the wait of a visitor. `predicted`: the predicted wait.
    pub fn waited(&self, span: Duration, predicted: Option<Duration>) {
        self.wait.record(span);
        if let Some(predicted) = predicted {
            self.wait_error.record(span.abs_diff(predicted));
        }
    }
}
