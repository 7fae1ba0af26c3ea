//! How much a run measures.

use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub struct Effort {
    pub rounds: usize,
    /// For how long a round of a measurement looks.
    pub window: Duration,
    /// Before it looks.
    pub warm: Duration,
    /// Of `a million keys`.
    pub keys: u64,
    /// Of `10,000 in the queue`.
    pub deep: usize,
    /// Of `9000 waiting requests`.
    pub waiting: usize,
    /// Of `9000 idle connections`.
    pub connections: usize,
    /// Of `2000 idle TLS connections`.
    pub tls_connections: usize,
    /// Of `6000 keys`.
    pub slow: usize,
    /// Whether more rounds than usual were asked for: also where a round takes long.
    pub patient: bool,
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
            patient: false,
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

    /// So many rounds of each measurement, where `rounds` says so.
    pub fn with_rounds(self, rounds: Option<usize>) -> Self {
        Self {
            rounds: rounds.unwrap_or(self.rounds),
            patient: rounds.is_some(),
            ..self
        }
    }

    /// For measurements whose rounds take long: `most` of them, if no other number was asked for.
    pub fn at_most(self, most: usize) -> Self {
        let rounds = if self.patient {
            self.rounds
        } else {
            self.rounds.min(most)
        };
        Self { rounds, ..self }
    }

    /// No more connections than this process and each proxy may have.
    pub fn within(self, descriptors: usize) -> Self {
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
