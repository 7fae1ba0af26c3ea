//! Which clients nginx and drip let in, by the networks of their addresses.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::IpNet;

use crate::programs::nginx::Nginx;
use crate::support::file;
use crate::support::rng::Rng;
use crate::support::{Client, Gateway, Origin};

fn status(to: SocketAddr, client: IpAddr) -> u16 {
    let mut connection = Client::connect(to);
    connection
        .send(format!("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {client}\r\n\r\n").as_bytes());
    connection.answer().status
}

/// An address near the ends of few networks, so that they meet often.
fn address(rng: &mut Rng) -> IpAddr {
    let ends = [0, 1, 127, 128, 191, 192, 254, 255];
    if rng.percent(60) {
        let [c, d] = [rng.pick(&ends), rng.pick(&ends)];
        Ipv4Addr::new(10, rng.pick(&[9, 10]), c, d).into()
    } else {
        let [g, h] = [u16::from(rng.pick(&ends)), u16::from(rng.pick(&ends))];
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, rng.pick(&[0, 1]), g, h).into()
    }
}

fn network(rng: &mut Rng) -> IpNet {
    let address = address(rng);
    let (least, most) = if address.is_ipv4() {
        (8, 32)
    } else {
        (90, 128)
    };
    let prefix = u8::try_from(rng.within(least, most + 1)).expect("a prefix");
    IpNet::new(address, prefix).expect("a network").trunc()
}

/// nginx takes the first rule that matches, so it gets the most specific ones first, and of equal ones `deny`.
#[test]
fn nginx_with_sorted_rules_lets_the_same_clients_in() {
    let origin = Origin::start();
    let (mut passed, mut refused) = (0, 0);
    for nth in 0..10 {
        let mut rng = Rng::of(31, nth);
        let mut list = |count: u64| {
            let count = rng.within(0, count);
            let mut networks: Vec<IpNet> = (0..count).map(|_| network(&mut rng)).collect();
            networks.sort();
            networks.dedup();
            networks
        };
        let (allow, deny) = (list(10), list(10));
        if allow.is_empty() && deny.is_empty() {
            continue;
        }
        let both = |is_allowed: bool, list: &[IpNet]| {
            let rules = list.iter().map(|it| (it.prefix_len(), is_allowed, *it));
            rules.collect::<Vec<_>>()
        };
        let mut rules = [both(true, &allow), both(false, &deny)].concat();
        rules.sort_by_key(|(length, is_allowed, _)| (255 - length, *is_allowed));
        let mut theirs = "set_real_ip_from 127.0.0.1; real_ip_header X-Forwarded-For;".to_owned();
        for (_, is_allowed, network) in rules {
            let word = if is_allowed { "allow" } else { "deny" };
            write!(theirs, " {word} {network};").expect("a string takes it");
        }
        if !allow.is_empty() {
            theirs.push_str(" deny all;");
        }
        let nginx = Nginx::start(&origin, "", &[("/", &theirs)]);
        let field = |name: &str, list: &[IpNet]| match list {
            [] => String::new(),
            list => {
                let list: Vec<String> = list.iter().map(|it| format!("\"{it}\"")).collect();
                format!("{name} = [{}]\n", list.join(", "))
            }
        };
        let ours = field("allow", &allow) + &field("deny", &deny);
        let routes = file(&origin, "", &[("/", &ours)]);
        let gateway = Gateway::start(&format!("trusted_proxies = [\"127.0.0.1\"]\n{routes}"));
        for _ in 0..40 {
            let client = address(&mut rng);
            let expected = status(nginx.address, client);
            let found = status(gateway.address(), client);
            assert_eq!(found, expected, "{client}: {ours}");
            match found {
                200 => passed += 1,
                403 => refused += 1,
                other => panic!("{other}"),
            }
        }
    }
    assert!(passed > 50 && refused > 50, "{passed} {refused}");
}
