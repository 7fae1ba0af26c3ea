//! The parameters of a simulated scenario: a gate with a back-off in front of a synthetic origin.

use std::time::Duration;

use crate::BackoffLimits;
use crate::backoff::tests::limits;
use crate::fixtures::{ms, secs};

/// Parameters of a simulation.
pub(super) struct Scenario {
    /// Length of the simulation.
    pub seconds: u64,
    /// Requests a second that arrive at the gate.
    pub offered: f64,
    /// Seed of random arrivals. `None`: even arrivals.
    pub seed: Option<u64>,
    /// Configured rate of the gate.
    pub rate: Option<&'static str>,
    /// Configured limit of requests in flight.
    pub max_in_flight: Option<usize>,
    pub limits: BackoffLimits,
    /// Number of requests that the origin serves at the same time.
    pub workers: usize,
    /// Upper bound of the requests that wait at the origin. It rejects (*sheds*) more.
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
            limits: limits(),
            workers: 10,
            room: 20,
            changes: vec![(20.0, 3), (60.0, 10)],
            takes: |_| ms(50),
            timeout: secs(30),
            retry_after: None,
        }
    }
}
