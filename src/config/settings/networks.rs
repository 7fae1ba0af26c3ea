//! Lists of networks, and whether an address is in them.
//!
//! `allow` and `deny` of a route decide which clients it serves. Other lists have peers, such as
//! trusted proxies. A peer is the other end of a connection: a client, or a proxy in front of it.

use std::collections::{BTreeSet, HashMap};
use std::iter;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use foldhash::fast::RandomState;
use ipnet::IpNet;

/// Networks of one list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks {
    /// In the order in which they are written.
    pub list: Vec<IpNet>,
    /// Absolute path of the file with the list; `None`: the list is in the configuration itself.
    pub file: Option<PathBuf>,
}

/// Access rules of a route, by the addresses of clients.
///
/// The most specific network decides. `deny` decides if a network is in both lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientNetworks {
    /// Whether the clients of a network are allowed.
    is_allowed: HashMap<IpNet, bool, RandomState>,
    /// Prefix lengths of the networks. A client is looked up once per length, the longest first.
    lengths: BTreeSet<u8>,
    /// Whether clients outside of all networks are allowed, and clients on Unix sockets.
    allows_others: bool,
}

impl ClientNetworks {
    /// Makes the rules of both lists. With an `allow`, clients outside of all networks are refused.
    pub fn new(allow: Option<&Networks>, deny: Option<&Networks>) -> Self {
        let mut is_allowed = HashMap::default();
        for (networks, access) in [(allow, true), (deny, false)] {
            let list = networks.iter().flat_map(|networks| &networks.list);
            is_allowed.extend(list.map(|network| (network.trunc(), access)));
        }
        Self {
            lengths: is_allowed.keys().map(IpNet::prefix_len).collect(),
            is_allowed,
            allows_others: allow.is_none(),
        }
    }

    /// Returns whether a client is served. `None`: a client on a Unix socket, which has no address.
    pub fn serves(&self, address: Option<IpAddr>) -> bool {
        let most_specific = address.and_then(|address| {
            let found = self.most_specific(address);
            // An IPv4 network is as specific as the IPv6 network of its addresses in NAT64.
            let embedded = embedded_ipv4(address).and_then(|ipv4| self.most_specific(ipv4.into()));
            let embedded = embedded.map(|(length, access)| (length + NAT64_LENGTH, access));
            let both = found.into_iter().chain(embedded);
            // Of two equally long prefixes, the one without access decides.
            both.max_by_key(|(length, access)| (*length, !access))
        });
        most_specific.map_or(self.allows_others, |(_, access)| access)
    }

    /// Returns whether the most specific network around this address is in `allow`.
    ///
    /// Ignores the IPv4 address in a NAT64 address.
    fn is_in_allow(&self, address: IpAddr) -> bool {
        self.most_specific(address)
            .is_some_and(|(_, access)| access)
    }

    /// Returns the prefix length of the most specific network with this address, and whether it is
    /// allowed.
    fn most_specific(&self, address: IpAddr) -> Option<(u8, bool)> {
        let mut lengths = self.lengths.iter().rev();
        lengths.find_map(|length| {
            let network = IpNet::new(address, *length).ok()?.trunc();
            Some((*length, *self.is_allowed.get(&network)?))
        })
    }
}

/// Peers of connections from clients, such as trusted proxies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peers {
    /// Peers with an address.
    pub networks: Networks,
    /// Whether the list contains all programs that connect to a Unix socket: `"unix:"`.
    pub has_unix: bool,
    /// The same networks, for a fast lookup.
    by_address: ClientNetworks,
}

impl Peers {
    /// Makes a list of these networks, and of the peers on Unix sockets if `has_unix`.
    pub fn new(networks: Networks, has_unix: bool) -> Self {
        Self {
            by_address: ClientNetworks::new(Some(&networks), None),
            networks,
            has_unix,
        }
    }

    /// Returns whether the list contains a peer. `None` is a peer on a Unix socket.
    pub fn contains(&self, peer: Option<IpAddr>) -> bool {
        match peer {
            // The IPv4 address in a NAT64 address is another peer. Treating it as the same would
            // extend trust.
            Some(peer) => self.by_address.is_in_allow(peer),
            None => self.has_unix,
        }
    }
}

/// Prefix length of `64:ff9b::/96`, in which a NAT64 gateway embeds IPv4 addresses.
const NAT64_LENGTH: u8 = 96;

/// Returns the IPv4 address embedded in an IPv6 address, as NAT64 and SIIT translate it.
///
/// Both translate between IPv4 and IPv6: NAT64 with a table of its connections, SIIT without one
/// (RFC 7915). The well-known prefix is `64:ff9b::/96` (RFC 6052, section 2.1).
pub fn embedded_ipv4(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else {
        return None;
    };
    match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
        }
        _ => None,
    }
}

/// Returns whether one of the networks contains a client's address.
///
/// Also returns true for a network that contains the
/// [IPv4 address embedded in it](embedded_ipv4).
pub fn has_client(networks: &[IpNet], address: IpAddr) -> bool {
    let embedded = embedded_ipv4(address).map(IpAddr::from);
    let mut addresses = iter::once(address).chain(embedded);
    addresses.any(|address| networks.iter().any(|network| network.contains(&address)))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use proptest::prelude::*;

    use super::*;

    /// Returns a list of a route; `None` if it is empty.
    fn networks(list: Vec<IpNet>) -> Option<Networks> {
        (!list.is_empty()).then_some(Networks { list, file: None })
    }

    #[test]
    fn the_most_specific_network_decides_and_deny_among_equals() {
        let parse = |list: &[&str]| networks(list.iter().map(|it| it.parse().unwrap()).collect());
        let rules = |allow: &[&str], deny: &[&str]| {
            ClientNetworks::new(parse(allow).as_ref(), parse(deny).as_ref())
        };
        let serves =
            |rules: &ClientNetworks, address: &str| rules.serves(Some(address.parse().unwrap()));
        // A NAT64 address is in the networks of its IPv4 address, too.
        let nat64 = rules(
            &["64:ff9b::/96", "64:ff9b::c000:207/128", "10.9.9.0/24"],
            &["192.0.2.0/24", "10.0.0.0/8"],
        );
        for (address, expected) in [
            ("64:ff9b::203.0.113.1", true),
            ("203.0.113.1", false),
            ("64:ff9b::192.0.2.1", false),
            ("64:ff9b::192.0.2.7", true),
            ("192.0.2.7", false),
            ("64:ff9b::10.9.9.1", true),
            ("64:ff9b::10.9.8.1", false),
            ("64:ff9b:1::10.9.9.1", false),
        ] {
            assert_eq!(serves(&nat64, address), expected, "{address}");
        }
        let all = rules(&["0.0.0.0/0", "::/0"], &[]);
        assert!(serves(&all, "ffff::") && !all.serves(None));
    }

    /// Reference: decides by comparing the address with each network.
    fn serves_one_by_one(allow: &[IpNet], deny: &[IpNet], address: IpAddr) -> bool {
        let longest_prefix = |list: &[IpNet]| {
            let around = list.iter().filter(|network| network.contains(&address));
            around.map(IpNet::prefix_len).max()
        };
        match (longest_prefix(allow), longest_prefix(deny)) {
            (None, None) => allow.is_empty(),
            (allow, deny) => allow > deny,
        }
    }

    proptest! {
        #![proptest_config(testing::config())]

        #[test]
        fn a_decision_is_that_of_a_comparison_with_each_network(
            // Whether IPv4, whether allowed, quarter of the last byte, and number of host bits.
            rules in prop::collection::vec((any::<bool>(), any::<bool>(), 0u8..4, 0u8..=8), 1..12),
            // Whether IPv4, and the last byte.
            addresses in prop::collection::vec((any::<bool>(), any::<u8>()), 20),
        ) {
            // Few addresses, at both ends of the range, so that networks often overlap.
            let address = |is_v4: bool, number: u8| -> IpAddr {
                let high = if number >= 128 { 0xff } else { 0 };
                let mut octets = [high; 16];
                octets[15] = number;
                if is_v4 {
                    Ipv4Addr::new(high, high, high, number).into()
                } else {
                    Ipv6Addr::from(octets).into()
                }
            };
            let (mut allow, mut deny) = (Vec::new(), Vec::new());
            for (is_v4, is_allowed, quarter, bits) in rules {
                let longest = if is_v4 { 32 } else { 128 };
                let network = IpNet::new(address(is_v4, quarter * 64 + 3), longest - bits);
                let list = if is_allowed { &mut allow } else { &mut deny };
                list.push(network.unwrap().trunc());
            }
            let (allow_list, deny_list) = (networks(allow.clone()), networks(deny.clone()));
            let rules = ClientNetworks::new(allow_list.as_ref(), deny_list.as_ref());
            for (is_v4, number) in addresses {
                let address = address(is_v4, number);
                let expected = serves_one_by_one(&allow, &deny, address);
                prop_assert_eq!(rules.serves(Some(address)), expected, "{}", address);
            }
        }
    }
}
