//! The parameters of a simulated scenario.

use std::time::Duration;

use crate::{BackoffLimits, Percent};

/// Parameters of a simulation.
pub(super) struct Scenario {
    pub seconds: u64,
    pub offered: f64,
    /// Seed of random arrivals. `None`: even arrivals.
    pub seed: Option<u64>,
    pub rate: Option<&'static str>,
    pub max_in_flight: Option<usize>,
    pub limits: BackoffLimits,
    pub workers: usize,
    /// Upper bound of the requests that wait at the origin.
    pub room: usize,
    /// Changes of the number of workers: second and number.
    pub changes: Vec<(f64, usize)>,
    /// Returns the service time of a request, by its number.
    pub takes: fn(usize) -> Duration,
    /// Time after which a request without an answer is trouble.
    pub timeout: Duration,
    /// Retry-After of shed requests.
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
