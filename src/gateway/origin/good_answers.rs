//! Latest good answers of a server: the clients that got them, and when.
//!
//! They show that a server works for other clients while the requests of one client fail:
//! `failures`.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use config::client_network;
use limit::Moment;

/// Resolution of the instants, in nanoseconds.
///
/// A good answer that comes sooner after the recorded one to the same client is not recorded.
const RESOLUTION: u64 = 10_000_000;

/// Client, identified by its address. All IPv6 addresses of a /64 network are one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Client(u64);

impl Client {
    /// Returns the client with this address. All clients without an address are one.
    pub(super) fn of(address: Option<IpAddr>) -> Self {
        Self(match address.map(|it| client_network(it.to_canonical())) {
            None => 0,
            Some(IpAddr::V4(address)) => address.to_bits().into(),
            Some(IpAddr::V6(address)) => u64::try_from(address.to_bits() >> 64).unwrap_or_default(),
        })
    }
}

/// Latest good answers of a server, to the two clients that got one most recently.
#[derive(Debug, Default)]
pub(super) struct GoodAnswers([GoodAnswer; 2]);

/// Latest good answer to one client.
#[derive(Debug, Default)]
struct GoodAnswer {
    client: AtomicU64,
    /// Instant in nanoseconds, up to [`RESOLUTION`] early. Zero: no answer.
    nanos: AtomicU64,
}

impl GoodAnswer {
    fn is_to(&self, client: Client) -> bool {
        self.client.load(Ordering::Relaxed) == client.0
    }

    fn nanos(&self) -> u64 {
        self.nanos.load(Ordering::Relaxed)
    }
}

impl GoodAnswers {
    /// Records a good answer to `client`.
    pub(super) fn note(&self, client: Client, at: Moment) {
        let [first, second] = &self.0;
        // Replaces the answer to the same client, or else the older one.
        let answer = if first.is_to(client) {
            first
        } else if second.is_to(client) || second.nanos() < first.nanos() {
            second
        } else {
            first
        };
        // All workers read this memory, so it is written only once per resolution.
        if at.as_nanos().saturating_sub(answer.nanos()) >= RESOLUTION {
            answer.client.store(client.0, Ordering::Relaxed);
            answer.nanos.store(at.as_nanos(), Ordering::Relaxed);
        }
    }

    /// Returns the instant of the last good answer, up to 10 ms early.
    ///
    /// `except`: answers to this client do not count.
    pub(super) fn last(&self, except: Option<Client>) -> Option<Moment> {
        let answers = self.0.iter();
        let others = answers.filter(|it| !except.is_some_and(|client| it.is_to(client)));
        let last = others.map(GoodAnswer::nanos).max();
        last.filter(|nanos| *nanos > 0).map(Moment::from_nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_answer_to_another_client_is_kept_beside_a_frequent_client() {
        let at = |millis: u64| Moment::from_nanos(millis * 1_000_000);
        let [often, seldom, third] = [1, 2, 3].map(Client);
        let answers = GoodAnswers::default();
        assert_eq!(answers.last(None), None);
        answers.note(seldom, at(1000));
        for millis in 1000..3000 {
            answers.note(often, at(millis));
        }
        assert_eq!(answers.last(None), Some(at(2990)));
        assert_eq!(answers.last(Some(seldom)), Some(at(2990)));
        assert_eq!(answers.last(Some(often)), Some(at(1000)));
        answers.note(third, at(2995));
        assert_eq!(answers.last(Some(often)), Some(at(2995)));
        for millis in 3000..4000 {
            let client = if millis % 7 == 0 { seldom } else { often };
            answers.note(client, at(millis));
        }
        assert!(answers.last(Some(often)) > Some(at(3980)));
    }

    #[test]
    fn networks_of_ipv6_are_clients() {
        let client = |text: &str| Client::of(text.parse().ok());
        assert_eq!(client("2001:db8::1"), client("2001:db8::2"));
        assert_ne!(client("2001:db8::1"), client("2001:db8:0:1::1"));
        assert_eq!(client("10.0.0.1"), client("::ffff:10.0.0.1"));
        assert_ne!(client("10.0.0.1"), client("10.0.0.2"));
    }
}
