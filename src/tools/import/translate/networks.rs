//! Translates `allow` and `deny`.
//!
//! nginx applies the first rule that matches a client; drip applies the most specific network. Two
//! networks are either disjoint or nested. The translation removes rules that never apply because
//! an earlier rule covers all their clients. Each remaining network then comes before the networks
//! that contain it, so nginx and drip decide the same.

use std::collections::HashMap;
use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::page::{Section, list};
use super::scope::{everywhere, named};
use crate::import::tree::Directive;

/// `allow` and `deny` of a route. Without entries, all clients are allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::import) struct Networks {
    pub(in crate::import) allow: Vec<IpNet>,
    pub(in crate::import) deny: Vec<IpNet>,
}

impl Networks {
    /// Translates these rules.
    ///
    /// `why_addresses_differ`: reason why drip may see other client addresses than nginx.
    ///
    /// # Errors
    ///
    /// Returns the reason why a route cannot express the rules; `None` if they allow no client.
    pub(super) fn of(
        rules: &[&Directive],
        why_addresses_differ: Option<&str>,
    ) -> Result<Self, Option<String>> {
        if let Some(why) = why_addresses_differ {
            return Err(Some(why.to_owned()));
        }
        let mut effective = EffectiveRules::default();
        for rule in rules {
            if effective.add(rule).is_none() {
                let shown = rule.args.join(" ");
                return Err(Some(format!("{} \"{shown}\" is not a network", rule.name)));
            }
        }
        effective.networks().ok_or(None)
    }

    /// Returns whether all clients are allowed.
    pub(super) fn is_empty(&self) -> bool {
        self.allow.is_empty() && self.deny.is_empty()
    }

    /// Writes the fields `allow` and `deny` of a route.
    pub(in crate::import) fn write(&self, section: &mut Section) {
        for (name, networks) in [("allow", &self.allow), ("deny", &self.deny)] {
            if !networks.is_empty() {
                let texts: Vec<String> = networks.iter().map(text).collect();
                section.fields.push((name, list(&texts)));
            }
        }
    }
}

/// Formats a network. A single address has no prefix length.
fn text(network: &IpNet) -> String {
    if network.prefix_len() == network.max_prefix_len() {
        network.addr().to_string()
    } else {
        network.to_string()
    }
}

/// The networks of rules that can apply to a client, in the order of the rules.
#[derive(Default)]
struct EffectiveRules {
    order: Vec<IpNet>,
    /// Whether each network is allowed.
    is_allowed: HashMap<IpNet, bool>,
}

impl EffectiveRules {
    /// Adds a rule after the others; `None` if it is not a valid rule.
    fn add(&mut self, rule: &Directive) -> Option<()> {
        let [text] = &rule.args[..] else {
            return None;
        };
        let is_allowed = rule.name == "allow";
        if text == "all" {
            for network in whole_networks() {
                self.insert(network, is_allowed);
            }
        } else if text != "unix:" {
            let network = network(text)?;
            // nginx compares IPv4-mapped client addresses as IPv4, so no client is in this network.
            if !is_mapped(&network) {
                self.insert(network, is_allowed);
            }
        }
        Some(())
    }

    /// Adds a network, unless an earlier rule covers all its clients.
    fn insert(&mut self, network: IpNet, is_allowed: bool) {
        let is_shadowed =
            self.is_allowed.contains_key(&network) || self.outer_verdict(network).is_some();
        if !is_shadowed {
            self.order.push(network);
            self.is_allowed.insert(network, is_allowed);
        }
    }

    /// Returns the verdict on the smallest network that contains this one: whether it is allowed.
    fn outer_verdict(&self, network: IpNet) -> Option<bool> {
        let mut outer = network.supernet();
        while let Some(network) = outer {
            if let Some(is_allowed) = self.is_allowed.get(&network) {
                return Some(*is_allowed);
            }
            outer = network.supernet();
        }
        None
    }

    /// Returns the same rules as fields of a route; `None` if no client is allowed.
    fn networks(&self) -> Option<Networks> {
        let mut networks = Networks::default();
        for network in &self.order {
            let is_allowed = self.is_allowed[network];
            // A network with the same verdict as the network that contains it is redundant.
            let is_needed = is_allowed != self.outer_verdict(*network).unwrap_or(true);
            if network.prefix_len() > 0 && is_needed {
                let list = if is_allowed {
                    &mut networks.allow
                } else {
                    &mut networks.deny
                };
                list.push(*network);
            }
        }
        let is_open = |network: &IpNet| self.is_allowed.get(network).copied().unwrap_or(true);
        let open: Vec<IpNet> = whole_networks().into_iter().filter(is_open).collect();
        // With an `allow`, clients in none of the networks are refused.
        if open.len() < whole_networks().len() || !networks.allow.is_empty() {
            networks.allow.extend(open);
            if networks.allow.is_empty() {
                return None;
            }
        }
        Some(networks)
    }
}

/// Parses a network or an address as nginx writes it.
pub(in crate::import) fn network(text: &str) -> Option<IpNet> {
    let network = text.parse::<IpNet>();
    let network = network.or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    Some(network.ok()?.trunc())
}

/// Returns whether a network consists of IPv4-mapped IPv6 addresses.
pub(in crate::import) fn is_mapped(network: &IpNet) -> bool {
    matches!(network, IpNet::V6(it) if it.addr().to_ipv4_mapped().is_some())
}

/// Returns the network of all IPv4 addresses, and that of all IPv6 addresses.
fn whole_networks() -> [IpNet; 2] {
    [Ipv4Net::default().into(), Ipv6Net::default().into()]
}

/// Returns the reason why drip may see another client address than nginx, if any.
///
/// `trusted_proxies` applies to the whole gateway and yields the rightmost untrusted address.
pub(super) fn why_addresses_differ(http: &[Directive]) -> Option<&'static str> {
    let proxies = everywhere(http, "set_real_ip_from");
    let mut names = ["set_real_ip_from", "real_ip_header", "real_ip_recursive"].iter();
    let is_for_all = names.all(|name| everywhere(http, name).len() == named(http, name).count());
    let is_network =
        |it: &&Directive| network(it.arg(0)).is_some_and(|network| !is_mapped(&network));
    let value = |name: &str| named(http, name).next().map_or("", |it| it.arg(0));
    let is_same = is_for_all
        && value("real_ip_header").eq_ignore_ascii_case("x-forwarded-for")
        && value("real_ip_recursive") == "on"
        && proxies.iter().all(is_network);
    (!proxies.is_empty() && !is_same).then_some(
        "drip does not find the address of the client in this way: it reads X-Forwarded-For of the networks in trusted_proxies, for all servers, as with real_ip_recursive on",
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::import::notes::Notes;
    use config;
    use std::path::Path;

    /// Whether a rule allows or denies, and its network.
    type Rule = (bool, String);

    fn directives<'n>(rules: &[Rule], notes: &'n Notes) -> Vec<Directive<'n>> {
        let directive = |(is_allowed, text): &Rule| Directive {
            name: if *is_allowed { "allow" } else { "deny" }.to_owned(),
            args: vec![text.clone()],
            block: None,
            at: notes.start_of(Path::new("")),
        };
        rules.iter().map(directive).collect()
    }

    fn translated(rules: &[Rule]) -> Result<Networks, Option<String>> {
        let notes = Notes::default();
        let directives = directives(rules, &notes);
        Networks::of(&directives.iter().collect::<Vec<_>>(), None)
    }

    /// Returns nginx's verdict: that of the first rule that matches.
    fn nginx_allows(rules: &[Rule], client: IpAddr) -> bool {
        let matches =
            |text: &str| text == "all" || network(text).is_some_and(|it| it.contains(&client));
        let mut rules = rules.iter();
        rules
            .find(|(_, text)| matches(text))
            .is_none_or(|(is_allowed, _)| *is_allowed)
    }

    /// Returns drip's verdict with the fields of a route.
    fn drip_allows(networks: &Networks, client: IpAddr) -> bool {
        let list = |list: &[IpNet]| {
            (!list.is_empty()).then(|| config::Networks {
                list: list.to_vec(),
                file: None,
            })
        };
        let (allow, deny) = (list(&networks.allow), list(&networks.deny));
        config::ClientNetworks::new(allow.as_ref(), deny.as_ref()).serves(Some(client))
    }

    /// Generates addresses that differ in the last two bytes.
    fn addresses() -> impl Strategy<Value = IpAddr> {
        let ends = prop::sample::select(vec![0u8, 1, 2, 127, 128, 255]);
        (any::<bool>(), ends.clone(), ends).prop_map(|(is_v4, c, d)| {
            if is_v4 {
                IpAddr::from([10, 0, c, d])
            } else {
                let mut octets = [0; 16];
                octets[..2].copy_from_slice(&[0x20, 0x01]);
                octets[14..].copy_from_slice(&[c, d]);
                IpAddr::from(octets)
            }
        })
    }

    /// Generates rules with networks that are often nested.
    fn rules() -> impl Strategy<Value = Vec<Rule>> {
        // Number of bits after the prefix.
        let bits = prop::sample::select(vec![0u8, 1, 7, 8, 9, 15, 16, 17, 32, 100, 128]);
        let network = (addresses(), bits).prop_map(|(address, bits)| {
            let length = if address.is_ipv4() { 32 } else { 128 };
            format!("{address}/{}", length - bits.min(length))
        });
        let text = prop_oneof![
            8 => network,
            2 => addresses().prop_map(|it| it.to_string()),
            1 => Just("all".to_owned()),
            1 => Just("unix:".to_owned()),
        ];
        prop::collection::vec((any::<bool>(), text), 1..12)
    }

    proptest! {
        #![proptest_config(testing::config())]

        #[test]
        fn drip_allows_the_clients_that_nginx_allows(
            rules in rules(),
            clients in prop::collection::vec(addresses(), 30),
        ) {
            match translated(&rules) {
                Ok(networks) => {
                    for client in clients {
                        let allowed = drip_allows(&networks, client);
                        let expected = nginx_allows(&rules, client);
                        prop_assert_eq!(allowed, expected, "{} {:?} {:?}", client, rules, networks);
                    }
                }
                Err(None) => {
                    for client in clients {
                        prop_assert!(!nginx_allows(&rules, client), "{} {:?}", client, rules);
                    }
                }
                Err(Some(why)) => prop_assert!(false, "{:?} {}", rules, why),
            }
        }
    }

    #[test]
    fn rules_without_effect_are_not_written() {
        // `+` stands for `allow` and `-` for `deny`.
        for (rules, allow, deny) in [
            ("+10.0.0.0/8 -all", "10.0.0.0/8", ""),
            ("-192.0.2.1 +all", "", "192.0.2.1"),
            ("-192.0.2.1/32", "", "192.0.2.1"),
            (
                "-10.9.9.9 +10.0.0.0/8 +10.1.0.0/16 -10.2.0.0/16 -all",
                "10.0.0.0/8",
                "10.9.9.9",
            ),
            ("+10.1.2.3/8 -all +all", "10.0.0.0/8", ""),
            (
                "+10.1.0.0/16 -10.0.0.0/8",
                "10.1.0.0/16, 0.0.0.0/0, ::/0",
                "10.0.0.0/8",
            ),
            ("-2001:db8::/32 -0.0.0.0/0", "::/0", "2001:db8::/32"),
            ("+0.0.0.0/0 +::/0 -all", "", ""),
            ("+::ffff:10.0.0.0/104 -::/0", "0.0.0.0/0", ""),
        ] {
            let rule = |rule: &str| (rule.starts_with('+'), rule[1..].to_owned());
            let rules: Vec<_> = rules.split(' ').map(rule).collect();
            let networks = translated(&rules).unwrap();
            let shown = |list: &[IpNet]| list.iter().map(text).collect::<Vec<_>>().join(", ");
            let found = [shown(&networks.allow), shown(&networks.deny)];
            assert_eq!(found, [allow, deny], "{rules:?}");
        }
    }
}
