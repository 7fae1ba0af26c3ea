use std::time::Duration;

use crate::{BackoffLimits, Percent};

/// What is simulated.
pub(super) struct Scenario {
    pub seconds: u64,
    pub offered: f64,
    /// Random arrivals of this seed; `None`: even ones.
    pub seed: Option<u64>,
    pub rate: Option<&'static str>,
    pub max_in_flight: Option<usize>,
    pub limits: BackoffLimits,
    pub workers: usize,
    /// Requests that may wait at the origin.
    pub room: usize,
    /// From a second on, so many workers.
    pub changes: Vec<(f64, usize)>,
    /// How long a request is served, by its number.
    pub takes: fn(usize) -> Duration,
    /// A request without an answer after this time is trouble.
    pub timeout: Duration,
    /// What shed requests are told.
    pub retry_after: Option<Duration>,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            seconds: 120,
            offered: 150.0,
            seed: None,
            rate: Some("200r/s"),
            max_in_flight: None,
            limits: BackoffLimits {
                slow: None,
                trip: Percent::from_millionths(100_000),
                floor: Percent::from_millionths(100_000),
                max_pause: Duration::from_secs(30),
            },
            workers: 10,
            room: 20,
            changes: vec![(20.0, 3), (60.0, 10)],
            takes: |_| Duration::from_millis(50),
            timeout: Duration::from_secs(30),
            retry_after: None,
        }
    }
}
