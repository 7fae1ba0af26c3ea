//! Which clients nginx lets in by its rules in their order, and drip on what `drip import` makes of them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::import::drip_on_the_file_of;
use crate::programs::nginx::Nginx;
use crate::support::rng::Rng;
use crate::support::{Client, Origin};

fn status(to: SocketAddr, path: &str, client: IpAddr) -> u16 {
    let mut connection = Client::connect(to);
    let head = format!("GET {path} HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {client}\r\n\r\n");
    connection.send(head.as_bytes());
    connection.answer().status
}

/// An address near the ends of few networks, so that they meet often.
fn address(rng: &mut Rng) -> IpAddr {
    let ends = [0, 1, 127, 128, 255];
    if rng.percent(60) {
        let [c, d] = [rng.pick(&ends), rng.pick(&ends)];
        Ipv4Addr::new(10, rng.pick(&[9, 10]), c, d).into()
    } else {
        let [g, h] = [u16::from(rng.pick(&ends)), u16::from(rng.pick(&ends))];
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, rng.pick(&[0, 1]), g, h).into()
    }
}

/// A rule as people write it: with the bits behind the prefix, too.
fn rule(rng: &mut Rng) -> String {
    let word = rng.pick(&["allow", "deny"]);
    let address = address(rng);
    if rng.percent(15) {
        return format!("{word} {address};");
    }
    let (least, most) = if address.is_ipv4() {
        (0, 32)
    } else {
        (80, 128)
    };
    format!("{word} {address}/{};", rng.within(least, most + 1))
}

#[test]
fn drip_on_the_imported_file_lets_in_the_clients_whom_the_first_rule_lets_in() {
    let origin = Origin::start();
    let mut rng = Rng::of(41, 0);
    let mut locations: Vec<(String, String)> = Vec::new();
    for nth in 0..24 {
        let mut rules = String::new();
        for _ in 0..rng.within(1, 9) {
            rules.push_str(&rule(&mut rng));
        }
        match nth % 3 {
            0 => rules.push_str("deny all;"),
            1 => rules.push_str("allow all; deny all;"),
            _ => {}
        }
        locations.push((format!("/{nth}/"), rules));
    }
    let locations: Vec<(&str, &str)> = locations.iter().map(|(a, b)| (&**a, &**b)).collect();
    let trust = "set_real_ip_from 127.0.0.1; real_ip_header X-Forwarded-For; real_ip_recursive on;";
    let nginx = Nginx::start(&origin, trust, &locations);
    let gateway = drip_on_the_file_of(&nginx);
    let (mut passed, mut refused) = (0, 0);
    for (path, rules) in locations {
        for _ in 0..16 {
            let client = address(&mut rng);
            let expected = status(nginx.address, path, client);
            let found = status(gateway.address(), path, client);
            assert_eq!(found, expected, "{client}: {rules}");
            match found {
                200 => passed += 1,
                403 => refused += 1,
                other => panic!("{other}"),
            }
        }
    }
    assert!(passed > 50 && refused > 50, "{passed} {refused}");
}
