//! Compares which clients nginx and drip allow by their networks.
//!
//! drip runs on a file written by hand, and on the import of nginx's file.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::IpNet;

use super::import::drip_on_the_file_of;
use crate::programs::nginx::Nginx;
use crate::support::file;
use crate::support::rng::Rng;
use crate::support::{Gateway, Origin, fetch_with};

/// nginx's directives that let a field name the client.
const TRUST: &str =
    "set_real_ip_from 127.0.0.1; real_ip_header X-Forwarded-For; real_ip_recursive on;";

/// Returns an address near the ends of few networks, so that random networks overlap often.
fn address(rng: &mut Rng) -> IpAddr {
    let ends = [0, 1, 127, 128, 191, 192, 254, 255];
    let [c, d] = [rng.pick(&ends), rng.pick(&ends)];
    if rng.percent(60) {
        Ipv4Addr::new(10, rng.pick(&[9, 10]), c, d).into()
    } else {
        let f = rng.pick(&[0, 1]);
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, f, c.into(), d.into()).into()
    }
}

/// Returns a network of one of these addresses, with the bits behind its prefix.
fn network(rng: &mut Rng, least: [u64; 2]) -> IpNet {
    let address = address(rng);
    let (least, most) = if address.is_ipv4() {
        (least[0], 32)
    } else {
        (least[1], 128)
    };
    let prefix = u8::try_from(rng.within(least, most + 1)).expect("a prefix");
    IpNet::new(address, prefix).expect("a network")
}

/// Number of clients that both allowed, and that both refused.
#[derive(Default)]
struct Compared([usize; 2]);

impl Compared {
    fn ask(&mut self, to: [SocketAddr; 2], path: &str, client: IpAddr, rules: &str) {
        let field = format!("X-Forwarded-For: {client}\r\n");
        let [theirs, ours] = to.map(|to| fetch_with(to, path, &field).status);
        assert_eq!(ours, theirs, "{client}: {rules}");
        match ours {
            200 => self.0[0] += 1,
            403 => self.0[1] += 1,
            other => panic!("{other}"),
        }
    }

    fn check(&self) {
        assert!(self.0.iter().all(|count| *count > 50), "{:?}", self.0);
    }
}

/// nginx with sorted rules allows the same clients.
///
/// nginx uses the first rule that matches, so it gets the most specific ones first, and of equal
/// ones
/// `deny`.
#[test]
fn nginx_with_sorted_rules_lets_the_same_clients_in() {
    let origin = Origin::start();
    let mut compared = Compared::default();
    for nth in 0..10 {
        let mut rng = Rng::of(31, nth);
        let mut list = |count: u64| {
            let count = rng.within(0, count);
            let mut list: Vec<_> = (0..count)
                .map(|_| network(&mut rng, [8, 90]).trunc())
                .collect();
            list.sort();
            list.dedup();
            list
        };
        let lists = [("allow", list(10)), ("deny", list(10))];
        if lists.iter().all(|(_, list)| list.is_empty()) {
            continue;
        }
        let rules = lists
            .iter()
            .flat_map(|(word, list)| list.iter().map(move |it| (*word, *it)));
        let mut rules: Vec<_> = rules.collect();
        rules.sort_by_key(|(word, network)| (255 - network.prefix_len(), *word == "allow"));
        let rules = rules
            .iter()
            .map(|(word, network)| format!(" {word} {network};"));
        let rest = if lists[0].1.is_empty() {
            ""
        } else {
            " deny all;"
        };
        let theirs = format!("{TRUST}{}{rest}", rules.collect::<String>());
        let nginx = Nginx::start(&origin, "", &[("/", &theirs)]);
        let fields = lists
            .iter()
            .filter(|(_, list)| !list.is_empty())
            .map(|(word, list)| {
                let list: Vec<String> = list.iter().map(ToString::to_string).collect();
                format!("{word} = {list:?}\n")
            });
        let ours: String = fields.collect();
        let routes = file(&origin, "", &[("/", &ours)]);
        let gateway = Gateway::start(&format!("trusted_proxies = [\"127.0.0.1\"]\n{routes}"));
        for _ in 0..40 {
            let both = [nginx.address, gateway.address()];
            compared.ask(both, "/", address(&mut rng), &ours);
        }
    }
    compared.check();
}

#[test]
fn drip_on_the_imported_file_lets_in_the_clients_whom_the_first_rule_lets_in() {
    let origin = Origin::start();
    let mut rng = Rng::of(41, 0);
    let mut locations: Vec<(String, String)> = Vec::new();
    for nth in 0..24 {
        let mut rules = String::new();
        for _ in 0..rng.within(1, 9) {
            // As people write it: with the bits behind the prefix, too.
            let word = rng.pick(&["allow", "deny"]);
            rules += &if rng.percent(15) {
                format!("{word} {};", address(&mut rng))
            } else {
                format!("{word} {};", network(&mut rng, [0, 80]))
            };
        }
        rules += ["deny all;", "allow all; deny all;", ""][nth % 3];
        locations.push((format!("/{nth}/"), rules));
    }
    let locations: Vec<(&str, &str)> = locations.iter().map(|(a, b)| (&**a, &**b)).collect();
    let nginx = Nginx::start(&origin, TRUST, &locations);
    let gateway = drip_on_the_file_of(&nginx);
    let mut compared = Compared::default();
    for (path, rules) in locations {
        for _ in 0..16 {
            let both = [nginx.address, gateway.address()];
            compared.ask(both, path, address(&mut rng), rules);
        }
    }
    compared.check();
}
