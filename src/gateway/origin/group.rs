//! Servers with weights, limits, backups or hashing: their strength, and the choice among them.
//!
//! The arithmetic of the choice is in `choice`. Servers with nothing but a URL have no group.

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
    /// Sum of `max_in_flight` of the servers that are no backups, if each server has one.
    max_room: Option<usize>,
    /// Time for which a server that comes back gets fewer requests; zero: it does not.
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
    pub(super) fn of(settings: &config::Origin, servers: &[Arc<Server>]) -> Option<Arc<Self>> {
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
        let max_room = limits.sum::<Option<usize>>();
        Some(Arc::new(Self {
            members: members.collect(),
            max_room,
            slow_start: settings.slow_start,
            rotation: Mutex::new(RoundRobin::new(servers.len())),
        }))
    }

    /// Chooses one of the servers for which `may_be` is true, and calls `take` with its index.
    ///
    /// `hash`: hash of the request's key, if keys are hashed.
    pub(super) fn choose<T>(
        &self,
        may_be: impl Fn(&Arc<Server>) -> bool,
        hash: Option<u64>,
        now: Moment,
        take: impl FnOnce(usize) -> T,
    ) -> Result<T, NoServer> {
        let mut rotation = self.rotation.lock().unwrap_or_else(PoisonError::into_inner);
        let mut candidates = self.candidates(now);
        for (candidate, member) in candidates.iter_mut().zip(&self.members) {
            candidate.is_in &= may_be(&member.server);
        }
        rotation.choose(&candidates, hash).map(take)
    }

    /// Returns the number of requests that may be in flight at the servers; `None`: no limit.
    ///
    /// Requests at servers that are out are added to the limits of the other servers. Backups add
    /// no permits: they replace other servers.
    pub(super) fn room(&self, now: Moment) -> Option<usize> {
        let candidates = self.candidates(now);
        // If no server is in, the waiters leave the gate and get an error.
        if !candidates.iter().any(|it| it.is_in) {
            return None;
        }
        let mut room = 0_usize;
        for it in candidates {
            let limit = if it.is_in { it.max_in_flight? } else { 0 };
            room = room.saturating_add(limit.max(it.in_flight));
        }
        Some(self.max_room.map_or(room, |max_room| room.min(max_room)))
    }

    /// Returns the current weight and limit of each server.
    ///
    /// The limit of a server that came back recently grows with its weight. It does not while all
    /// servers that are in came back recently, as no other server could take the rest.
    fn candidates(&self, now: Moment) -> Candidates {
        let candidate = |member: &Member| Candidate {
            is_in: member.server.is_in(now),
            is_backup: member.settings.backup,
            weight: u64::from(member.settings.weight) * self.strength(member, now),
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

    /// Lowers the limits of servers that came back recently, if another server has its full weight.
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
    fn strength(&self, member: &Member, now: Moment) -> u64 {
        if self.slow_start.is_zero() || self.members.len() == 1 {
            return WHOLE;
        }
        match member.server.health.back_for(now) {
            Some(back) if back < self.slow_start => {
                let part = back.as_nanos() * u128::from(WHOLE) / self.slow_start.as_nanos();
                u64::try_from(part).unwrap_or(WHOLE).max(1)
            }
            _ => WHOLE,
        }
    }
}
