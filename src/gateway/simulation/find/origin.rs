use crate::simulation::random::Random;

/// An answer of a simulated origin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    /// Seconds until its head, which is its end, too.
    pub took: f64,
    pub status: u16,
}

/// An origin that serves requests in their order.
pub(super) trait Origin {
    /// The answer to a request that arrives at `at`, seconds since the start. Times do not go back.
    fn answer(&mut self, at: f64, random: &mut Random) -> Answer;
}

/// Servers that take requests in their order.
#[derive(Debug)]
pub(super) struct Servers {
    free_at: Vec<f64>,
}

impl Servers {
    pub fn new(count: usize) -> Self {
        Self {
            free_at: vec![0.0; count],
        }
    }

    /// The server that is free first, and when it can begin.
    pub fn next(&self, at: f64) -> (usize, f64) {
        let mut first = 0;
        for (nth, free) in self.free_at.iter().enumerate() {
            if *free < self.free_at[first] {
                first = nth;
            }
        }
        (first, self.free_at[first].max(at))
    }

    pub fn occupy(&mut self, server: usize, until: f64) {
        self.free_at[server] = until;
    }
}

/// A number from 0 to 1, without 0.
pub(super) fn uniform(random: &mut Random) -> f64 {
    (random.number(0..1 << 53) + 1) as f64 / (1_u64 << 53) as f64
}

/// An exponential time with this mean.
pub(super) fn exponential(random: &mut Random, mean: f64) -> f64 {
    -uniform(random).ln() * mean
}
