//! The networks whose clients a route serves: `allow` and `deny`.

use std::net::IpAddr;
use std::path::PathBuf;

use ipnet::IpNet;

/// The networks of one list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks {
    /// In the order in which they are written.
    pub list: Vec<IpNet>,
    /// The absolute path of the file that has them, one a line; `None`: they stand in the
    /// configuration itself.
    pub file: Option<PathBuf>,
}

/// Which clients a route serves, by their addresses.
///
/// The most specific network decides, and `deny` where one is in both lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientNetworks {
    v4: Ranges<u32>,
    v6: Ranges<u128>,
    /// Whether clients in none of the networks are served, and those of socket files.
    others: bool,
}

impl ClientNetworks {
    /// Joins both lists. With an `allow`, clients in none of the networks are refused.
    #[must_use]
    pub fn new(allow: Option<&Networks>, deny: Option<&Networks>) -> Self {
        let others = allow.is_none();
        let of = |networks: Option<&Networks>, is_allowed| {
            let list = networks.map_or(&[][..], |networks| &networks.list);
            let rules: Vec<Rule> = list.iter().map(|it| Rule::new(it, is_allowed)).collect();
            rules
        };
        let rules = [of(allow, true), of(deny, false)].concat();
        let (v4, v6) = rules.into_iter().partition(|rule| rule.is_v4);
        Self {
            v4: Ranges::new(v4, others),
            v6: Ranges::new(v6, others),
            others,
        }
    }

    /// Whether a client with this address is served; `None`: a client on a socket file, which is
    /// in no network.
    #[must_use]
    pub fn serve(&self, address: Option<IpAddr>) -> bool {
        match address {
            Some(IpAddr::V4(address)) => self.v4.decide(address.to_bits()),
            Some(IpAddr::V6(address)) => self.v6.decide(address.to_bits()),
            None => self.others,
        }
    }
}

/// What one network decides.
#[derive(Clone, Copy)]
struct Rule {
    is_v4: bool,
    first: u128,
    last: u128,
    is_allowed: bool,
}

impl Rule {
    fn new(network: &IpNet, is_allowed: bool) -> Self {
        let bits = |address: IpAddr| match address {
            IpAddr::V4(address) => u128::from(address.to_bits()),
            IpAddr::V6(address) => address.to_bits(),
        };
        Self {
            is_v4: matches!(network, IpNet::V4(_)),
            first: bits(network.network()),
            last: bits(network.broadcast()),
            is_allowed,
        }
    }
}

/// Ranges of addresses, one behind the other, with what is decided for each.
///
/// A search halves them until one is left. There are at most twice as many as networks, so it
/// takes no more steps than the longest prefix has bits.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ranges<N> {
    /// The first address of each range but the one that begins at 0, in order.
    starts: Vec<N>,
    /// Whether clients are served: in the range that begins at 0, then in each of `starts`.
    allowed: Vec<bool>,
}

impl<N: Copy + Ord + TryFrom<u128>> Ranges<N> {
    fn new(mut rules: Vec<Rule>, others: bool) -> Self {
        // Outer networks come before inner ones, and of equal ones that which denies is the inner.
        rules.sort_by(|a, b| {
            let outer_first = a.first.cmp(&b.first).then(b.last.cmp(&a.last));
            outer_first.then(b.is_allowed.cmp(&a.is_allowed))
        });
        let mut ranges = Self {
            starts: Vec::new(),
            allowed: vec![others],
        };
        // The networks around the current address, the innermost last.
        let mut around: Vec<Rule> = Vec::new();
        for rule in rules {
            ranges.end_before(Some(rule.first), &mut around, others);
            ranges.begin(rule.first, rule.is_allowed);
            around.push(rule);
        }
        ranges.end_before(None, &mut around, others);
        ranges
    }

    /// Ends the networks that have no address from this one on; `None`: all.
    fn end_before(&mut self, address: Option<u128>, around: &mut Vec<Rule>, others: bool) {
        let has_ended = |rule: &mut Rule| address.is_none_or(|address| rule.last < address);
        while let Some(inner) = around.pop_if(has_ended) {
            let outer = around.last().map_or(others, |rule| rule.is_allowed);
            if let Some(next) = inner.last.checked_add(1) {
                self.begin(next, outer);
            }
        }
    }

    /// Begins a range at this address, unless it is behind the last one.
    fn begin(&mut self, start: u128, is_allowed: bool) {
        let Ok(start) = N::try_from(start) else {
            return;
        };
        if self.starts.last() == Some(&start) {
            self.starts.pop();
            self.allowed.pop();
        }
        if self.allowed.last() != Some(&is_allowed) {
            self.starts.push(start);
            self.allowed.push(is_allowed);
        }
    }

    fn decide(&self, address: N) -> bool {
        let range = self.starts.partition_point(|start| *start <= address);
        self.allowed.get(range).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;

    fn networks(list: &[&str]) -> Option<Networks> {
        let list: Vec<IpNet> = list.iter().map(|it| it.parse().unwrap()).collect();
        (!list.is_empty()).then_some(Networks { list, file: None })
    }

    #[test]
    fn the_most_specific_network_decides_and_deny_among_equals() {
        let rules = |allow: &[&str], deny: &[&str]| {
            ClientNetworks::new(networks(allow).as_ref(), networks(deny).as_ref())
        };
        let serves =
            |rules: &ClientNetworks, address: &str| rules.serve(Some(address.parse().unwrap()));
        let nested = rules(
            &["10.0.0.0/8", "10.9.9.0/24", "2001:db8::/32"],
            &["10.9.0.0/16", "10.9.9.7/32", "2001:db8:1::/48"],
        );
        for (address, expected) in [
            ("10.0.0.0", true),
            ("10.255.255.255", true),
            ("11.0.0.0", false),
            ("9.255.255.255", false),
            ("10.9.0.0", false),
            ("10.9.9.1", true),
            ("10.9.9.7", false),
            ("10.9.9.8", true),
            ("10.9.10.0", false),
            ("10.10.0.0", true),
            ("2001:db8::1", true),
            ("2001:db8:1::1", false),
            ("2001:db9::", false),
        ] {
            assert_eq!(serves(&nested, address), expected, "{address}");
        }
        assert!(!nested.serve(None));
        let denied = rules(&[], &["0.0.0.0/0", "255.255.255.255/32"]);
        assert!(!serves(&denied, "255.255.255.255") && !serves(&denied, "0.0.0.0"));
        assert!(serves(&denied, "::") && denied.serve(None));
        let both = rules(&["192.0.2.0/24"], &["192.0.2.0/24"]);
        assert!(!serves(&both, "192.0.2.1"));
        let all = rules(&["0.0.0.0/0", "::/0"], &[]);
        assert!(serves(&all, "255.255.255.255") && serves(&all, "ffff::") && !all.serve(None));
    }

    /// What a comparison with each network decides.
    fn one_by_one(allow: &[IpNet], deny: &[IpNet], address: IpAddr) -> bool {
        let longest = |list: &[IpNet]| {
            let around = list.iter().filter(|it| it.contains(&address));
            around.map(IpNet::prefix_len).max()
        };
        match (longest(allow), longest(deny)) {
            (None, None) => allow.is_empty(),
            (allow, deny) => allow > deny,
        }
    }

    proptest! {
        #![proptest_config(testing::config())]

        #[test]
        fn it_decides_as_a_comparison_with_each_network(
            rules in prop::collection::vec((any::<bool>(), any::<bool>(), 0u8..4, 0u8..=8), 1..12),
            addresses in prop::collection::vec((any::<bool>(), any::<u8>()), 20),
        ) {
            // Few addresses, at both ends, so that networks meet often.
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
            let of = |list: &Vec<IpNet>| {
                (!list.is_empty()).then(|| Networks { list: list.clone(), file: None })
            };
            let networks = ClientNetworks::new(of(&allow).as_ref(), of(&deny).as_ref());
            for (is_v4, number) in addresses {
                let address = address(is_v4, number);
                let expected = one_by_one(&allow, &deny, address);
                prop_assert_eq!(networks.serve(Some(address)), expected, "{}", address);
            }
        }
    }
}
