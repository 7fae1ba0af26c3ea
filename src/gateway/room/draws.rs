//! Limit of the position numbers that one address draws in a room without `draw`.
//!
//! A number that is called and not used keeps a session from other visitors for the time `claim`. A
//! visitor who enters and never comes back keeps it for the time `idle`. The limit lets one address
//! take up to half of the room.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use limit::{Moment, RoomLimits, to_whole};

/// Numbers that an address may draw at once in any room, however small.
const MIN_BURST: u32 = 20;
/// Maximum number of remembered addresses.
///
/// Further addresses are not limited: so many addresses are not one client.
const MAX_ADDRESSES: usize = 65_536;
/// Minimum interval of sweeps for addresses that can be forgotten.
const SWEEP_PERIOD: Duration = Duration::from_secs(1);

/// A leaky bucket for each address: each number that it draws is a charge.
#[derive(Debug, Default)]
pub(super) struct Draws {
    /// Instant at which the bucket of each address is empty. `None` is a unix socket.
    empty_at: HashMap<Option<IpAddr>, Moment>,
    /// Instant of the last sweep.
    last_sweep: Moment,
}

/// Limit of the numbers that one address may draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DrawBound {
    /// Maximum number of draws at once.
    burst: u32,
    /// Duration after which the address may draw `burst` numbers again.
    period: Duration,
}

/// Computes the limit of draws of an address in a room with these limits.
///
/// `None`: unlimited, because no visitor waits for the numbers of others.
pub(super) fn draw_bound(limits: &RoomLimits) -> Option<DrawBound> {
    let sessions = limits.sessions.map(|it| f64::from(it.get()));
    let calls_in_claim = (!limits.admit.is_unlimited())
        .then(|| limits.admit.per_second() * limits.claim.as_secs_f64());
    // Number of visitors that the room lets in at once, or calls within `claim`.
    let calls = match (sessions, calls_in_claim) {
        (Some(sessions), Some(calls_in_claim)) => sessions.min(calls_in_claim),
        (sessions, calls_in_claim) => sessions.or(calls_in_claim)?,
    };
    let half = u32::try_from(to_whole(calls / 2.0)).unwrap_or(u32::MAX);
    let period = match sessions {
        Some(_) => limits.idle.max(limits.claim),
        None => limits.claim,
    };
    Some(DrawBound {
        burst: half.max(MIN_BURST),
        period,
    })
}

impl Draws {
    /// Charges an address for one number.
    ///
    /// # Errors
    ///
    /// The address drew too many numbers. Returns the duration after which it may draw again.
    pub(super) fn charge(
        &mut self,
        address: Option<IpAddr>,
        bound: DrawBound,
        now: Moment,
    ) -> Result<(), Duration> {
        if self.empty_at.len() >= MAX_ADDRESSES && !self.empty_at.contains_key(&address) {
            self.sweep(now);
            if self.empty_at.len() >= MAX_ADDRESSES {
                return Ok(());
            }
        }
        let empty_at = self.empty_at.entry(address).or_insert(now);
        // Charges are in time: one draw is a share of the period, and a full bucket is the period.
        let charged = empty_at.since(now) + bound.period / bound.burst;
        match charged.checked_sub(bound.period) {
            Some(over) if !over.is_zero() => Err(over),
            _ => {
                *empty_at = now + charged;
                Ok(())
            }
        }
    }

    /// Forgets addresses whose buckets are empty.
    fn sweep(&mut self, now: Moment) {
        if now.since(self.last_sweep) >= SWEEP_PERIOD {
            self.last_sweep = now;
            self.empty_at.retain(|_, empty_at| *empty_at > now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(sessions: u32, admit: &str) -> RoomLimits {
        RoomLimits {
            sessions: sessions.try_into().ok(),
            admit: admit.parse().unwrap(),
            idle: Duration::from_secs(600),
            claim: Duration::from_secs(60),
            opens: None,
            is_paused: false,
        }
    }

    fn address(nth: u32) -> IpAddr {
        IpAddr::V4(nth.into())
    }

    fn at(seconds: u64) -> Moment {
        Moment::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn an_address_draws_half_of_what_a_room_calls() {
        let most = |sessions, admit: &str| {
            let bound = draw_bound(&limits(sessions, admit)).unwrap();
            (bound.burst, bound.period.as_secs())
        };
        assert_eq!(most(500, "1000r/s"), (250, 600));
        assert_eq!(most(500, "2r/s"), (60, 600));
        assert_eq!(most(0, "2r/s"), (60, 60));
        assert_eq!(most(1, "1r/s"), (20, 600), "a small room");
        let open = RoomLimits {
            admit: limit::Rate::UNLIMITED,
            ..limits(0, "1r/s")
        };
        assert_eq!(draw_bound(&open), None);
    }

    #[test]
    fn an_address_draws_its_burst_and_as_many_again_in_a_period() {
        let bound = draw_bound(&limits(100, "1000r/s")).unwrap();
        let mut draws = Draws::default();
        let mut most = |address, now| {
            let accepted = (0..1000).filter(|_| draws.charge(address, bound, now).is_ok());
            accepted.count()
        };
        assert_eq!(most(Some(address(1)), at(1)), 50);
        assert_eq!(most(Some(address(1)), at(1 + 11)), 0);
        assert_eq!(most(Some(address(1)), at(1 + 12)), 1);
        assert_eq!(most(Some(address(2)), at(1 + 12)), 50, "another address");
        assert_eq!(most(None, at(1 + 12)), 50, "a unix socket");
        assert_eq!(most(Some(address(1)), at(1 + 612)), 50);
        let after = draws.charge(Some(address(1)), bound, at(1 + 612));
        assert_eq!(after, Err(Duration::from_secs(12)));
    }

    #[test]
    fn addresses_are_forgotten_once_their_buckets_are_empty() {
        let bound = draw_bound(&limits(100, "1000r/s")).unwrap();
        let mut draws = Draws::default();
        for nth in 0..100_000 {
            assert_eq!(draws.charge(Some(address(nth)), bound, at(10)), Ok(()));
        }
        assert_eq!(draws.empty_at.len(), MAX_ADDRESSES);
        assert_eq!(draws.charge(Some(address(100_000)), bound, at(30)), Ok(()));
        assert_eq!(draws.empty_at.len(), 1);
    }
}
