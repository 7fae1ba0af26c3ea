use std::time::Duration;

use ::metrics::{Histogram, Unit, counter, describe_counter, describe_histogram, histogram};

use super::tally::Tally;

const ROOM_REQUESTS: &str = "drip_room_requests_total";
const ROOM_WAIT: &str = "drip_room_wait_seconds";
const ROOM_WAIT_ERROR: &str = "drip_room_wait_error_seconds";

/// Registers the help texts.
pub(super) fn describe() {
    describe_counter!(
        ROOM_REQUESTS,
        "Requests that asked the waiting room of an origin, by what they were."
    );
    describe_histogram!(
        ROOM_WAIT,
        Unit::Seconds,
        "From the draw of a number to its call, for visitors who came."
    );
    describe_histogram!(
        ROOM_WAIT_ERROR,
        Unit::Seconds,
        "By how much that differed from the wait that the visitor was told."
    );
}

/// What a request is to the waiting room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoomRequest {
    /// Of a visitor inside.
    Session,
    /// Of a visitor who waits on.
    Poll,
    /// Of a visitor who asks too often.
    TooOften,
    /// The first one of a visitor who was called.
    Came,
    /// The first one of a visitor who found a place.
    WalkedIn,
    /// It drew a number.
    Drew,
    /// It was refused a number, because its client draws too many.
    DrawRefused,
    /// No number was left for it.
    NoNumber,
    /// Its ticket was used or lost, or its session has ended.
    Ended,
    /// Its ticket or session is not of this room.
    Foreign,
}

impl RoomRequest {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Session,
        Self::Poll,
        Self::TooOften,
        Self::Came,
        Self::WalkedIn,
        Self::Drew,
        Self::DrawRefused,
        Self::NoNumber,
        Self::Ended,
        Self::Foreign,
    ];

    /// The value of the label `request`.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Poll => "poll",
            Self::TooOften => "too_often",
            Self::Came => "came",
            Self::WalkedIn => "walked_in",
            Self::Drew => "drew",
            Self::DrawRefused => "draw_refused",
            Self::NoNumber => "no_number",
            Self::Ended => "ended",
            Self::Foreign => "foreign",
        }
    }
}

/// Metrics of the waiting room of an origin.
#[derive(Debug)]
pub struct RoomMetrics {
    requests: [Tally; RoomRequest::ALL.len()],
    wait: Histogram,
    wait_error: Histogram,
}

impl RoomMetrics {
    /// The metrics of the room of `origin`; each call returns the same series.
    #[must_use]
    pub fn of(origin: &str) -> Self {
        let origin = origin.to_owned();
        Self {
            requests: RoomRequest::ALL.map(|request| {
                let request = request.label().to_owned();
                let labels = [("origin", origin.clone()), ("request", request)];
                Tally::into_series(counter!(ROOM_REQUESTS, &labels))
            }),
            wait: histogram!(ROOM_WAIT, "origin" => origin.clone()),
            wait_error: histogram!(ROOM_WAIT_ERROR, "origin" => origin),
        }
    }

    /// Counts a request.
    pub fn count(&self, request: RoomRequest) {
        self.requests[request as usize].add(1);
    }

    /// How many requests of this kind there were.
    #[must_use]
    pub fn counted(&self, request: RoomRequest) -> u64 {
        self.requests[request as usize].get()
    }

    /// Records how long a visitor waited, and what it was told.
    pub fn waited(&self, span: Duration, told: Option<Duration>) {
        self.wait.record(span);
        if let Some(told) = told {
            self.wait_error.record(span.abs_diff(told));
        }
    }

    /// Reports the counts to Prometheus.
    pub fn show(&self) {
        self.requests.iter().for_each(Tally::show);
    }
}
