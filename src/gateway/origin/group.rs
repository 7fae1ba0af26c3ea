//! Servers with weights, limits, backups or hashing: their present weights, and the choice.
//!
//! A server that comes in again begins with a part of its weight and of its limit, which grows
//! during `slow_start`. The arithmetic of the choice is in `choice`. Servers with nothing but a URL
//! have no group: `servers/pick` chooses among them.

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use config::{self, Balance};
use limit::{Moment, stable_hash};
use smallvec::SmallVec;

use super::choice::{Candidate, NoServer, RoundRobin, WHOLE};
use super::server::Server;

/// Servers of an origin with their settings.
pub(super) struct Group {
    members: Vec<Member>,
    /// Sum of `max_in_flight` of the servers that are no backups; `None`: a server has none.
    sum_of_limits: Option<usize>,
    /// Time for which a server that is in again gets fewer requests than others; zero: none.
    slow_start: Duration,
    /// Locked during each choice, so that no server gets more requests than its limit.
    rotation: Mutex<RoundRobin>,
}

/// Server with its settings.
struct Member {
    server: Arc<Server>,
    settings: config::OriginServer,
    /// Hash of the server's URL.
    id: u64,
}

type Candidates = SmallVec<[Candidate; 8]>;

impl Group {
    /// Returns the group of an origin's servers; `None` if the file gives only their URLs.
    pub(super) fn new(settings: &config::Origin, servers: &[Arc<Server>]) -> Option<Arc<Self>> {
        let is_plain = settings.servers.iter().all(config::OriginServer::is_plain)
            && settings.balance == Balance::LeastInFlight
            && settings.slow_start.is_zero();
        if is_plain {
            return None;
        }
        let member = |(server, settings): (&Arc<Server>, &config::OriginServer)| Member {
            server: Arc::clone(server),
            settings: settings.clone(),
            id: stable_hash(settings.to_string().as_bytes()),
        };
        let members = servers.iter().zip(&settings.servers).map(member);
        let limits = settings.servers.iter().map(|it| {
            let limit = it.max_in_flight?.get();
            Some(if it.backup { 0 } else { limit })
        });
        let sum_of_limits = limits.sum::<Option<usize>>();
        Some(Arc::new(Self {
            members: members.collect(),
            sum_of_limits,
            slow_start: settings.slow_start,
            rotation: Mutex::new(RoundRobin::new(servers.len())),
        }))
    }

    /// Chooses one of the servers for which `is_eligible` is true, and calls `take` with its index.
    ///
    /// `hash`: hash of the request's key, if keys are hashed.
    pub(super) fn choose<T>(
        &self,
        is_eligible: impl Fn(&Arc<Server>) -> bool,
        hash: Option<u64>,
        now: Moment,
        take: impl FnOnce(usize) -> T,
    ) -> Result<T, NoServer> {
        let mut rotation = self.rotation.lock().unwrap_or_else(PoisonError::into_inner);
        let mut candidates = self.candidates(now);
        for (candidate, member) in candidates.iter_mut().zip(&self.members) {
            candidate.is_in &= is_eligible(&member.server);
        }
        rotation.choose(&candidates, hash).map(take)
    }

    /// Returns the number of requests that may be in flight at the servers; `None`: no limit.
    ///
    /// Requests at servers that are out are added to the limits of the other servers. Backups add
    /// nothing: they replace other servers.
    pub(super) fn server_limit(&self, now: Moment) -> Option<usize> {
        let candidates = self.candidates(now);
        // If no server is in, the waiters leave the gate and get an error.
        if !candidates.iter().any(|it| it.is_in) {
            return None;
        }
        let mut allowed = 0_usize;
        for one in candidates {
            let limit = if one.is_in { one.max_in_flight? } else { 0 };
            allowed = allowed.saturating_add(limit.max(one.in_flight));
        }
        Some(self.sum_of_limits.map_or(allowed, |sum| allowed.min(sum)))
    }

    /// Returns the current weight and limit of each server.
    ///
    /// The limit of a server that came in again recently is lowered like its weight, unless this is
    /// true of all servers that are in: no other server could take the rest.
    fn candidates(&self, now: Moment) -> Candidates {
        let candidate = |member: &Member| Candidate {
            is_in: member.server.is_in(now),
            is_backup: member.settings.backup,
            weight: u64::from(member.settings.weight) * self.part_of_weight(member, now),
            in_flight: member.server.in_flight.count(),
            max_in_flight: member.settings.max_in_flight.map(Into::into),
            id: member.id,
        };
        let mut candidates: Candidates = self.members.iter().map(candidate).collect();
        if !self.slow_start.is_zero() {
            self.lower_limits(&mut candidates);
        }
        candidates
    }

    /// Lowers the limits of servers with less than their full weight, if another has all of it.
    fn lower_limits(&self, candidates: &mut [Candidate]) {
        let whole = |member: &Member| u64::from(member.settings.weight) * WHOLE;
        let mut all = self.members.iter().zip(candidates.iter());
        if !all.any(|(member, it)| it.is_in && it.weight >= whole(member)) {
            return;
        }
        for (member, it) in self.members.iter().zip(candidates) {
            let (weight, whole) = (u128::from(it.weight), u128::from(whole(member)));
            it.max_in_flight = it.max_in_flight.map(|limit| {
                let lowered = limit as u128 * weight / whole;
                usize::try_from(lowered).unwrap_or(limit).max(1)
            });
        }
    }

    /// Returns the present part of a server's weight, in thousandths.
    fn part_of_weight(&self, member: &Member, now: Moment) -> u64 {
        if self.slow_start.is_zero() || self.members.len() == 1 {
            return WHOLE;
        }
        match member.server.health.time_since_return(now) {
            Some(since_return) if since_return < self.slow_start => {
                let part = since_return.as_nanos() * u128::from(WHOLE) / self.slow_start.as_nanos();
                u64::try_from(part).unwrap_or(WHOLE).max(1)
            }
            _ => WHOLE,
        }
    }
}
