//! Choice of one server among several for a request. Pure arithmetic, without clock or I/O.
//!
//! `group` makes the candidates from the servers and their settings.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use limit::mixed;

/// Full weight of a server of weight 1.
///
/// Weights are in thousandths, so that a server that has just recovered can have a part of its
/// weight.
pub(super) const WHOLE: u64 = 1000;

/// Server among which the choice is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// Whether requests may be sent to the server.
    pub(super) is_in: bool,
    /// Whether the server gets requests only if no other server can take one.
    pub(super) is_backup: bool,
    /// Weight in thousandths, above zero.
    pub(super) weight: u64,
    /// Number of requests at the server.
    pub(super) in_flight: usize,
    /// Upper bound of the requests at the server at once; `None`: no limit.
    pub(super) max_in_flight: Option<usize>,
    /// Hash of the server's URL: its identity where keys are hashed.
    pub(super) id: u64,
}

/// Reason for which no server can take a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoServer {
    /// All servers are out.
    Out,
    /// Each server that is in has as many requests as its limit allows.
    Full,
}

/// Sums of nginx's smooth weighted round robin, which decides between servers of equal load.
///
/// In each choice, every eligible server gains its weight, and the server with the highest sum is
/// chosen and loses the total gained. So with weights 5, 1 and 1 the first server is not chosen
/// five times in a row (`ngx_http_upstream_get_peer` in nginx's `ngx_http_upstream_round_robin.c`).
pub(super) struct RoundRobin(Vec<i64>);

impl RoundRobin {
    pub(super) fn new(servers: usize) -> Self {
        Self(vec![0; servers])
    }

    /// Chooses the server of a key if there is a `hash`, otherwise the server with the lowest load.
    ///
    /// The load is the number of requests relative to the weight. A backup is chosen only if no
    /// other server can be.
    pub(super) fn choose(
        &mut self,
        servers: &[Candidate],
        hash: Option<u64>,
    ) -> Result<usize, NoServer> {
        for is_backup in [false, true] {
            let can_take = |it: &Candidate| it.is_backup == is_backup && it.has_room();
            let chosen = match hash {
                Some(hash) => choose_for_key(servers, hash, can_take),
                None => self.choose_least_loaded(servers, can_take),
            };
            if let Some(chosen) = chosen {
                return Ok(chosen);
            }
        }
        Err(if servers.iter().any(|it| it.is_in) {
            NoServer::Full
        } else {
            NoServer::Out
        })
    }

    /// Chooses as nginx's `least_conn`: round robin decides between servers with an equal load.
    fn choose_least_loaded(
        &mut self,
        servers: &[Candidate],
        can_take: impl Fn(&Candidate) -> bool,
    ) -> Option<usize> {
        let eligible = servers.iter().filter(|it| can_take(it));
        let lowest = eligible.min_by(|one, other| one.compare_load(other))?;
        let is_lowest = |it: &Candidate| can_take(it) && it.compare_load(lowest).is_eq();
        // Sum of the weights, and the server with the highest sum so far.
        let (mut sum, mut chosen): (i64, Option<usize>) = (0, None);
        for (nth, it) in servers.iter().enumerate().filter(|(_, it)| is_lowest(it)) {
            let weight = i64::try_from(it.weight).unwrap_or(i64::MAX);
            sum = sum.saturating_add(weight);
            self.0[nth] = self.0[nth].saturating_add(weight);
            if chosen.is_none_or(|known| self.0[nth] > self.0[known]) {
                chosen = Some(nth);
            }
        }
        let chosen = chosen?;
        self.0[chosen] = self.0[chosen].saturating_sub(sum);
        Some(chosen)
    }
}

impl Candidate {
    /// Returns whether the server is in and below its limit.
    fn has_room(&self) -> bool {
        let limit = self.max_in_flight;
        self.is_in && limit.is_none_or(|limit| self.in_flight < limit)
    }

    /// Compares the requests relative to the weights, without a division.
    fn compare_load(&self, other: &Self) -> Ordering {
        // a / x < b / y is the same as a * y < b * x.
        let load = |it: &Self, weight: u64| it.in_flight as u128 * u128::from(weight);
        load(self, other.weight).cmp(&load(other, self.weight))
    }
}

/// Returns the server of a key, by weighted rendezvous hashing.
///
/// Each server draws a number for the key, and the highest number wins. A server that is out does
/// not take part: its keys go to the server with the second-highest number, and no other key moves.
/// With draws `u` between 0 and 1, a server has the highest `weight / -ln(u)` in proportion to its
/// weight (Schindelhauer and Schomaker, Weighted Distributed Hash Tables, 2005).
fn choose_for_key(
    servers: &[Candidate],
    hash: u64,
    can_take: impl Fn(&Candidate) -> bool,
) -> Option<usize> {
    let eligible = servers.iter().enumerate().filter(|(_, it)| can_take(it));
    let scores = eligible.map(|(nth, it)| (nth, score(hash, it)));
    let chosen = scores.max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    Some(chosen.0)
}

/// Returns the weighted draw of a server for a key.
fn score(hash: u64, server: &Candidate) -> f64 {
    // 53 bits, as a double holds them, to a number between 0 and 1 that is neither.
    let bits = mixed(hash ^ server.id) >> 11;
    let drawn = (bits as f64 + 0.5) / (1_u64 << 53) as f64;
    server.weight as f64 / -drawn.ln()
}
