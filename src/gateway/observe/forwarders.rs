//! Untrusted peers that send requests of several clients, such as an unknown proxy.
//!
//! A peer is the other end of a connection. It names a client in the field `X-Forwarded-For`.

use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use foldhash::fast::RandomState;
use limit::Moment;

/// Minimum interval of requests that are looked at.
const INTERVAL: Duration = Duration::from_millis(10);
/// Maximum number of remembered peers.
const MAX_PEERS: usize = 4;
/// Duration for which a peer counts after it named different clients.
pub const FORWARDER_FOR: Duration = Duration::from_secs(5);

/// Peers of limited requests of one zone that name clients.
///
/// At most a hundred requests a second are looked at, of four peers. Any other request costs one
/// read of an atomic number.
#[derive(Debug, Default)]
pub struct Forwarders {
    /// Instant from which the next request is looked at, in nanoseconds.
    next: AtomicU64,
    peers: Mutex<Vec<Peer>>,
    hasher: RandomState,
}

/// A remembered peer.
#[derive(Debug)]
struct Peer {
    /// Address; `None`: the peer is connected by a socket file.
    address: Option<IpAddr>,
    /// Hash of the `X-Forwarded-For` of its last request.
    named: u64,
    /// Instant of its last request.
    seen: Moment,
    /// Instant at which a request last named other clients than the one before.
    differed: Option<Moment>,
}

impl Forwarders {
    /// Records a limited request of an untrusted peer.
    ///
    /// `named`: returns its `X-Forwarded-For`; `None` without one.
    pub fn note<'v>(
        &self,
        address: Option<IpAddr>,
        named: impl FnOnce() -> Option<&'v [u8]>,
        now: Moment,
    ) {
        let nanos = now.as_nanos();
        if nanos < self.next.load(Ordering::Relaxed) {
            return;
        }
        let next = nanos.saturating_add(u64::try_from(INTERVAL.as_nanos()).unwrap_or(u64::MAX));
        self.next.store(next, Ordering::Relaxed);
        let Some(named) = named() else {
            return;
        };
        let named = self.hasher.hash_one(named);
        // If another thread looks at a request at this moment, this one is left out.
        let Ok(mut peers) = self.peers.try_lock() else {
            return;
        };
        if let Some(peer) = peers.iter_mut().find(|peer| peer.address == address) {
            if peer.named != named {
                peer.differed = Some(now);
            }
            (peer.named, peer.seen) = (named, now);
            return;
        }
        if peers.len() >= MAX_PEERS
            && let Some(oldest) = (0..peers.len()).min_by_key(|index| peers[*index].seen)
        {
            peers.swap_remove(oldest);
        }
        peers.push(Peer {
            address,
            named,
            seen: now,
            differed: None,
        });
    }

    /// Returns the peers that named different clients in the last seconds.
    pub fn several(&self, now: Moment) -> Vec<Option<IpAddr>> {
        let peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = |moment: Moment| now.since(moment) < FORWARDER_FOR;
        let several = peers.iter().filter(|it| it.differed.is_some_and(is_recent));
        several.map(|peer| peer.address).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    fn peer(nth: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, nth])
    }

    #[test]
    fn a_peer_that_names_different_clients_is_found_and_forgotten() {
        let forwarders = Forwarders::default();
        let note = |nth, named: Option<&'static str>, millis| {
            forwarders.note(Some(peer(nth)), || named.map(str::as_bytes), at(millis));
        };
        // One peer names no client, one names one client, and one names two.
        for turn in 0..10 {
            let since = 1_000 + turn * 100;
            note(1, None, since);
            note(2, Some("192.0.2.1"), since + 30);
            let client = ["192.0.2.1", "192.0.2.2"][usize::from(turn % 2 == 0)];
            note(3, Some(client), since + 60);
        }
        assert_eq!(forwarders.several(at(2_000)), [Some(peer(3))]);
        assert_eq!(forwarders.several(at(6_950)), [Some(peer(3))]);
        assert_eq!(forwarders.several(at(6_960)), []);
    }

    #[test]
    fn few_requests_are_looked_at_and_few_peers_remembered() {
        let forwarders = Forwarders::default();
        let mut looked = 0;
        for micros in 0..100_000_u64 {
            let named = || {
                looked += 1;
                Some(&b"192.0.2.1"[..])
            };
            let now = Moment::from_nanos(1_000_000_000 + micros * 1_000);
            forwarders.note(Some(peer(1)), named, now);
        }
        assert_eq!(looked, 10, "in a tenth of a second");
        for nth in 0..200 {
            let now = at(2_000 + u64::from(nth) * 20);
            forwarders.note(Some(peer(nth)), || Some(b"192.0.2.1"), now);
        }
        assert_eq!(forwarders.peers.lock().unwrap().len(), MAX_PEERS);
    }
}
