//! A waiting room.

use std::time::Duration;

use super::durations::DurationHistogram;
use super::label::{CountBy, labels};

labels! {
    /// What a request is to the waiting room.
    pub enum RoomRequest {
        /// Of a visitor inside.
        Session = "session",
        /// Of a visitor who waits on.
        Poll = "poll",
        /// Of a visitor who asks too often.
        TooOften = "too_often",
        /// The first one of a visitor who was called.
        Came = "came",
        /// The first one of a visitor who found a place.
        WalkedIn = "walked_in",
        /// It drew a number.
        Drew = "drew",
        /// It was refused a number, because its client draws too many.
        DrawRefused = "draw_refused",
        /// No number was left for it.
        NoNumber = "no_number",
        /// Its ticket was used or lost, or its session has ended.
        Ended = "ended",
        /// Its ticket or session is not of this room.
        Foreign = "foreign",
    }
}

/// Metrics of the waiting room of an origin.
#[derive(Debug, Default)]
pub struct RoomMetrics {
    /// Requests by what they are to the room.
    pub requests: CountBy<RoomRequest>,
    /// From the draw of a number to its call, for visitors who came.
    pub wait: DurationHistogram,
    /// By how much that differed from the wait that the visitor was told.
    pub wait_error: DurationHistogram,
}

impl RoomMetrics {
    /// Counts a request.
    pub fn count(&self, request: RoomRequest) {
        self.requests.add(request, 1);
    }

    /// Records how long a visitor waited, and what it was told.
    pub fn waited(&self, span: Duration, told: Option<Duration>) {
        self.wait.record(span);
        if let Some(told) = told {
            self.wait_error.record(span.abs_diff(told));
        }
    }
}
