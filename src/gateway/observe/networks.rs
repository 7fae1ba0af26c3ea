//! Networks whose clients crowd a gate.
//!
//! A gate bounds the pace of all requests to an origin. If its slots are not shared by keys, it
//! does not tell clients apart. Then a crawler with hundreds of addresses is visible only by the
//! network that its addresses have in common.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use config::cut_ipv6;
use limit::Moment;

/// Maximum number of remembered requests.
const MAX_REQUESTS: usize = 256;
/// Duration for which a request is remembered.
const MAX_AGE: Duration = Duration::from_secs(10);
/// Time without a request after which a network is no crowd any more.
const MAX_GAP: Duration = Duration::from_secs(2);
/// Minimum number of addresses of a crowd.
const MIN_ADDRESSES: usize = 20;
/// Number of bits of an IPv4 address that name its network.
const IPV4_BITS: u8 = 24;
/// Number of bits of an IPv6 address that name its network.
const IPV6_BITS: u8 = 48;

/// Clients of the last requests that waited at a gate or were rejected there.
#[derive(Debug, Default)]
pub struct Networks(Mutex<VecDeque<(IpAddr, Moment)>>);

/// Network with at least half of these requests, and with many addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crowd {
    /// The network, such as `192.0.2.0/24`.
    pub network: String,
    /// Number of addresses of the network that sent these requests.
    pub addresses: usize,
    /// Number of requests of the network.
    pub requests: usize,
    /// Number of remembered requests of all clients.
    pub of: usize,
}

impl Networks {
    /// Records the client of a request that waits or was rejected.
    ///
    /// Clients of a private network are not recorded: there may be many in an office.
    pub fn note(&self, client: Option<IpAddr>, now: Moment) {
        let Some(client) = client.filter(|client| !is_private(*client)) else {
            return;
        };
        // If another thread records a client at this moment, this one is left out.
        let Ok(mut clients) = self.0.try_lock() else {
            return;
        };
        if clients.len() >= MAX_REQUESTS {
            clients.pop_front();
        }
        clients.push_back((client, now));
    }

    /// Returns the network that crowds the gate, if one does.
    pub fn crowd(&self, now: Moment) -> Option<Crowd> {
        let clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = clients.iter().filter(|(_, at)| now.since(*at) < MAX_AGE);
        let mut all_requests = 0;
        // Requests and addresses of each network.
        let mut networks: HashMap<IpAddr, (usize, HashSet<IpAddr>)> = HashMap::new();
        for (client, _) in recent {
            let (requests, addresses) = networks.entry(network_of(*client)).or_default();
            *requests += 1;
            addresses.insert(*client);
            all_requests += 1;
        }
        let largest = networks
            .into_iter()
            .max_by_key(|(_, (requests, _))| *requests);
        let (network, (requests, addresses)) = largest?;
        let mut newest = clients.iter().rev();
        let newest = newest.find(|(client, _)| network_of(*client) == network);
        if newest.is_none_or(|(_, at)| now.since(*at) >= MAX_GAP) {
            return None;
        }
        let bits = if network.is_ipv4() {
            IPV4_BITS
        } else {
            IPV6_BITS
        };
        (addresses.len() >= MIN_ADDRESSES && requests * 2 >= all_requests).then(|| Crowd {
            network: format!("{network}/{bits}"),
            addresses: addresses.len(),
            requests,
            of: all_requests,
        })
    }
}

/// Returns the first address of the network of a client.
fn network_of(client: IpAddr) -> IpAddr {
    match cut_ipv6(client, IPV6_BITS) {
        IpAddr::V4(client) => {
            let mask = u32::MAX << (32 - IPV4_BITS);
            Ipv4Addr::from(u32::from(client) & mask).into()
        }
        network @ IpAddr::V6(_) => network,
    }
}

/// Returns whether an address is of a private network.
fn is_private(client: IpAddr) -> bool {
    match client {
        IpAddr::V4(client) => client.is_private(),
        IpAddr::V6(client) => client.is_unique_local(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(100_000_000_000 + millis * 1_000_000)
    }

    /// Finds the crowd among `addresses` of a network, and `others` of other networks.
    fn find_crowd(network: [u8; 3], addresses: u8, others: u8) -> Option<Crowd> {
        let networks = Networks::default();
        for nth in 0..addresses {
            let [a, b, c] = network;
            networks.note(Some([a, b, c, nth].into()), at(0));
        }
        for nth in 0..others {
            networks.note(Some([198, 51, nth, 1].into()), at(0));
        }
        networks.crowd(at(1_000))
    }

    #[test]
    fn many_addresses_of_one_network_are_a_crowd() {
        let found = find_crowd([192, 0, 2], 40, 10).unwrap();
        assert_eq!(found.network, "192.0.2.0/24");
        assert_eq!((found.addresses, found.requests, found.of), (40, 40, 50));
        for (network, addresses, others) in [
            ([192, 0, 2], 19, 0),
            ([192, 0, 2], 40, 41),
            ([192, 168, 2], 40, 0),
            ([10, 0, 2], 40, 0),
        ] {
            assert_eq!(find_crowd(network, addresses, others), None, "{network:?}");
        }
    }

    #[test]
    fn one_busy_client_is_no_crowd_and_old_requests_are_forgotten() {
        let networks = Networks::default();
        for _ in 0..1_000 {
            networks.note(Some([192, 0, 2, 1].into()), at(0));
            networks.note(None, at(0));
        }
        assert_eq!(networks.crowd(at(0)), None);
        for nth in 0..1_000_u16 {
            let client = Ipv6Addr::new(0x2001, 0xdb8, 1, nth, 0, 0, 0, 1);
            networks.note(Some(client.into()), at(20));
        }
        let found = networks.crowd(at(2_000)).unwrap();
        assert_eq!(found.network, "2001:db8:1::/48");
        assert_eq!((found.addresses, found.of), (256, 256));
        // Another client that still waits is not part of the crowd.
        networks.note(Some([192, 0, 2, 1].into()), at(2_010));
        assert_eq!(networks.crowd(at(2_020)), None);
    }
}
