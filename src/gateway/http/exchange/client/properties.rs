//! Tests of finding the client's address, also with any bytes in the forwarding fields.

use std::net::{Ipv4Addr, Ipv6Addr};

use http::HeaderValue;
use proptest::prelude::*;
use testing::{bytes, config, replay};

use super::*;
use crate::http::message::test_heads::request;

const PROXY: &str = "10.0.0.1:9";
const STRANGER: &str = "192.0.2.1:9";

fn server(field: ForwardedHeader) -> Server {
    let proxies = "[server]\ntrusted_proxies = [\"10.0.0.0/8\", \"fd00::/8\"]";
    Server {
        forwarded_header: field,
        ..crate::test_settings::with(proxies).server
    }
}

/// Returns whether a line is a valid field value.
fn is_valid(line: &[u8]) -> bool {
    HeaderValue::from_bytes(line).is_ok()
}

/// Returns the client if `peer` sends these lines of the field. Leaves out invalid field values.
fn client(server: &Server, peer: &str, lines: &[Vec<u8>]) -> Client {
    let name = match server.forwarded_header {
        ForwardedHeader::XForwardedFor => "x-forwarded-for",
        ForwardedHeader::Forwarded => "forwarded",
    };
    let valid = lines.iter().filter(|line| is_valid(line));
    let fields: Vec<_> = valid.map(|line| (name, &line[..])).collect();
    Client::of(request(&fields).fields(), &Peer::at(peer), server)
}

/// Reference: returns the client's address by one line of `X-Forwarded-For`.
///
/// Reads the line from its end: the first address that is not a trusted proxy's, or else the last
/// address read. Returns `None` for a line without elements, or if an element that it reads is no
/// address.
fn naive(line: &[u8]) -> Option<IpAddr> {
    let mut named = None;
    let elements = line.rsplit(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    for element in elements.filter(|element| !element.is_empty()) {
        let text = str::from_utf8(element).ok()?;
        let alone = text.parse::<IpAddr>().ok();
        let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
        let with_port = || {
            let (before, port) = match text.strip_prefix('[') {
                Some(bracketed) => bracketed.split_once("]:")?,
                // Without brackets, only an IPv4 address can have a port.
                None => text.rsplit_once(':').filter(|(ip, _)| !ip.contains(':'))?,
            };
            before.parse().ok().filter(|_| !port.is_empty())
        };
        let address = alone.or_else(bracketed).or_else(with_port)?.to_canonical();
        let trusted = match address {
            IpAddr::V4(v4) => v4.octets()[0] == 10,
            IpAddr::V6(v6) => v6.octets()[0] == 0xfd,
        };
        if !trusted {
            return Some(address);
        }
        named = Some(address);
    }
    named
}

fn holds(line: &[u8]) -> Result<(), TestCaseError> {
    let lines = [line.to_vec()];
    for field in [ForwardedHeader::XForwardedFor, ForwardedHeader::Forwarded] {
        let server = server(field);
        let own = client(&server, STRANGER, &lines);
        prop_assert_eq!(own.address, "192.0.2.1".parse().ok());
        prop_assert!(!own.via_proxy);
        let forwarded = client(&server, PROXY, &lines);
        prop_assert!(forwarded.via_proxy);
        let address = forwarded.address.expect("an address");
        prop_assert_eq!(address, address.to_canonical());
        if field == ForwardedHeader::Forwarded {
            continue;
        }
        // A comma separates elements as the end of a line does.
        if let Some(comma) = line.iter().position(|byte| *byte == b',') {
            let lines = [line[..comma].to_vec(), line[comma + 1..].to_vec()];
            if lines.iter().all(|line| is_valid(line)) {
                prop_assert_eq!(client(&server, PROXY, &lines), forwarded);
            }
        }
        if is_valid(line) {
            let expected = naive(line).or("10.0.0.1".parse().ok());
            prop_assert_eq!(forwarded.address, expected);
        }
    }
    Ok(())
}

#[test]
fn the_corpus_holds() {
    replay("x-forwarded-for", holds);
    replay("forwarded", holds);
}

#[test]
fn a_proxy_with_a_mapped_address_is_trusted() {
    let server = server(ForwardedHeader::XForwardedFor);
    let found = client(&server, "[::ffff:10.0.0.1]:9", &[b"198.51.100.1".to_vec()]);
    assert_eq!(found.address, "198.51.100.1".parse().ok());
}

#[test]
fn an_element_that_the_client_may_have_written_is_to_the_left_of_its_address() {
    let forwarded = "for=192.0.2.1, for=\"203.0.113.7:80\"";
    for (line, expected) in [
        ("192.0.2.1, 203.0.113.7", Some("192.0.2.1")),
        ("x, 192.0.2.1,, 203.0.113.7, 10.0.0.1", Some("192.0.2.1")),
        ("203.0.113.7", None),
        ("192.0.2.1", None),
        ("", None),
        (forwarded, Some("for=192.0.2.1")),
    ] {
        let (field, name) = if line == forwarded {
            (ForwardedHeader::Forwarded, "forwarded")
        } else {
            (ForwardedHeader::XForwardedFor, "x-forwarded-for")
        };
        let head = request(&[(name, line.as_bytes())]);
        let named = named_by_client(head.fields(), "203.0.113.7".parse().ok(), field);
        assert_eq!(named, expected.map(str::as_bytes), "{line}");
    }
}

#[test]
fn the_field_of_rfc_7239_is_read_as_it_says() {
    let server = server(ForwardedHeader::Forwarded);
    // The address of the client, and lines that name it, separated by `|`. A quote without an end is
    // text of its element. Inside quotes, a comma, a semicolon and `for=` have no meaning. `_ob` is
    // an obfuscated port. `unknown` and `_hidden` name no address: then the proxy counts as client.
    for (expected, lines) in [
        (
            "198.51.100.1",
            "for=198.51.100.1|For=\"198.51.100.1:4711\";proto=https;by=203.0.113.43|\
             for=198.51.100.1, for=10.2.3.4|for=198.51.100.1;host=\"a,b\"|\
             for=\"x, for=198.51.100.1|host=\"x;for=6.6.6.6;y\";for=198.51.100.1|\
             host=\"x\\\";for=6.6.6.6\";for=198.51.100.1|for=\"198.51.100.1:_ob\"",
        ),
        (
            "2001:db8::1",
            "proto=http; for=\"[2001:db8::1]:80\"|for=\"[2001:db8::1]:_ob\"",
        ),
        (
            "10.0.0.1",
            "for=unknown|for=198.51.100.1, for=_hidden|by=198.51.100.1",
        ),
    ] {
        for line in lines.split('|') {
            let found = client(&server, PROXY, &[line.into()]);
            assert_eq!(found.address, expected.parse().ok(), "{line}");
        }
    }
    let head = request(&[("x-forwarded-for", b"198.51.100.1")]);
    let ignored = Client::of(head.fields(), &Peer::at(PROXY), &server);
    assert_eq!(ignored.address, "10.0.0.1".parse().ok());
}

/// Generates an address of a trusted proxy, or of a client.
fn address(trusted: bool) -> impl Strategy<Value = IpAddr> {
    // First byte of an IPv4 address, and of an IPv6 address.
    let (octet, byte) = if trusted { (10, 0xfd) } else { (203, 0x20) };
    let v4 = move |bits: u32| IpAddr::V4(Ipv4Addr::from_bits(bits >> 8 | octet << 24));
    let v6 = move |bits: u128| IpAddr::V6(Ipv6Addr::from_bits(bits >> 8 | byte << 120));
    prop_oneof![any::<u32>().prop_map(v4), any::<u128>().prop_map(v6)]
}

/// Generates an element of the field as a proxy writes it, and its address.
fn element(field: ForwardedHeader, trusted: bool) -> impl Strategy<Value = (IpAddr, String)> {
    let around = prop::sample::select(vec![
        ("", ""),
        ("proto=https;", ""),
        ("", ";host=\"a,b;for=6.6.6.6\""),
        ("by=203.0.113.43; ", ";host=\"\\\\\""),
        ("host=\"\\\"for=6.6.6.6,\";", ";proto=http"),
        ("secret=\"\";", ";secret=\"\\\\\\\"\""),
    ]);
    (address(trusted), 0..3u8, around, any::<bool>()).prop_map(
        move |(address, form, around, mapped)| {
            let bare = match address {
                IpAddr::V4(v4) if mapped => format!("[{}]", v4.to_ipv6_mapped()),
                IpAddr::V4(v4) => v4.to_string(),
                IpAddr::V6(v6) => format!("[{v6}]"),
            };
            let port = if form == 0 { ":4711" } else { "" };
            let node = format!("{bare}{port}");
            let text = match field {
                ForwardedHeader::XForwardedFor if form == 2 => address.to_string(),
                ForwardedHeader::XForwardedFor => node,
                ForwardedHeader::Forwarded if form == 2 && address.is_ipv4() => {
                    format!("{}for={address}{}", around.0, around.1)
                }
                ForwardedHeader::Forwarded => format!("{}For=\"{node}\"{}", around.0, around.1),
            };
            (address, text)
        },
    )
}

/// Generates an element with which a client claims another address.
fn lie(folder: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let token = prop::sample::select(vec!["\"", "\\", ",", ";", "for=6.6.6.6", "=", " ", "y="]);
    let tokens = prop::collection::vec(token, 0..8);
    let quoting = tokens.prop_map(|tokens| tokens.concat().into_bytes());
    let lie = prop_oneof![quoting, bytes(folder)];
    lie.prop_filter("no field value", |lie| is_valid(lie))
}

/// Generates the address of a client, and the lines of a field with it and a lie of the client.
///
/// The elements of the client and of trusted proxies follow the lie, on its line or on new ones.
fn forwarded(
    field: ForwardedHeader,
    folder: &'static str,
) -> impl Strategy<Value = (IpAddr, Vec<Vec<u8>>)> {
    let client = (element(field, false), any::<bool>());
    let hops = prop::collection::vec((element(field, true), any::<bool>()), 0..3);
    (lie(folder), client, hops).prop_map(|(lie, client, hops)| {
        let address = client.0.0;
        let mut lines = vec![lie];
        for ((_, element), is_on_same_line) in [client].into_iter().chain(hops) {
            if is_on_same_line {
                let line = lines.last_mut().unwrap();
                line.extend_from_slice(format!(", {element}").as_bytes());
            } else {
                lines.push(element.into_bytes());
            }
        }
        (address, lines)
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_field_is_read_and_an_untrusted_peer_is_not_believed(
        line in prop_oneof![bytes("x-forwarded-for"), bytes("forwarded")],
    ) {
        holds(&line)?;
    }

    #[test]
    fn a_lie_left_of_the_client_changes_nothing(
        plain in forwarded(ForwardedHeader::XForwardedFor, "x-forwarded-for"),
        quoted in forwarded(ForwardedHeader::Forwarded, "forwarded"),
    ) {
        for (field, (expected, lines)) in [(ForwardedHeader::XForwardedFor, plain), (ForwardedHeader::Forwarded, quoted)] {
            let found = client(&server(field), PROXY, &lines);
            prop_assert_eq!(found.address, Some(expected), "{:?}", lines.join(&b'|').escape_ascii().to_string());
        }
    }
}
