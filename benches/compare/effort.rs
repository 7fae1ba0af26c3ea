//! Amount of measuring in a run.

use std::time::Duration;

/// Numbers of rounds, requests and connections of a run.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    pub rounds: usize,
    /// Duration of the measured window of a round.
    pub window: Duration,
    /// Duration of the warm-up before the window.
    pub warm: Duration,
    /// Keys in `a million keys`.
    pub keys: u64,
    /// Requests in `10,000 in the queue`.
    pub deep: usize,
    /// Requests in `9000 waiting requests`.
    pub waiting: usize,
    /// Connections in `9000 idle connections`.
    pub connections: usize,
    /// Connections in `2000 idle TLS connections`.
    pub tls_connections: usize,
    /// Keys in `6000 keys`.
    pub slow: usize,
    /// Whether a number of rounds was given. It then also applies to measurements with long rounds.
    pub has_given_rounds: bool,
}

impl Effort {
    pub fn whole() -> Self {
        Self {
            rounds: 5,
            window: Duration::from_millis(800),
            warm: Duration::from_millis(200),
            keys: 1_000_000,
            deep: 10_000,
            waiting: 9000,
            connections: 9000,
            tls_connections: 2000,
            slow: 6000,
            has_given_rounds: false,
        }
    }

    pub fn quick() -> Self {
        Self {
            rounds: 1,
            window: Duration::from_millis(400),
            keys: 100_000,
            deep: 2000,
            waiting: 2000,
            connections: 2000,
            tls_connections: 500,
            slow: 2000,
            ..Self::whole()
        }
    }

    /// Sets the number of rounds, if one is given.
    pub fn with_rounds(self, rounds: Option<usize>) -> Self {
        Self {
            rounds: rounds.unwrap_or(self.rounds),
            has_given_rounds: rounds.is_some(),
            ..self
        }
    }

    /// For measurements with long rounds: at most `most` rounds, unless a number was given.
    pub fn at_most(self, most: usize) -> Self {
        let rounds = if self.has_given_rounds {
            self.rounds
        } else {
            self.rounds.min(most)
        };
        Self { rounds, ..self }
    }

    /// Limits the connections to those that this process and each proxy may open.
    pub fn limited_to(self, descriptors: usize) -> Self {
        // For listeners, files, and the connections to the origin, whose other ends are in this
        // process.
        const OTHERS: usize = 2000;
        let most = descriptors.saturating_sub(OTHERS).max(100);
        Self {
            deep: self.deep.min(most),
            waiting: self.waiting.min(most),
            connections: self.connections.min(most),
            tls_connections: self.tls_connections.min(most),
            slow: self.slow.min(most),
            ..self
        }
    }
}
