//! Tests of finding the client's address, also with any bytes in the forwarding fields.

use std::net::{Ipv4Addr, Ipv6Addr};

use http::HeaderValue;
use proptest::prelude::*;
use testing::{bytes, config, corpus};

use super::*;
use crate::http::message::test_heads::{peer_address, request};

const PROXY: &str = "10.0.0.1:9";
const STRANGER: &str = "192.0.2.1:9";

fn server(field: ForwardedHeader) -> Server {
    let proxies = "[server]\ntrusted_proxies = [\"10.0.0.0/8\", \"fd00::/8\"]";
    Server {
        forwarded_header: field,
        ..crate::test_settings::with(proxies).server
    }
}

/// Returns the client if `peer` sends these lines of the field.
///
/// Lines that are not valid field values are skipped.
fn client(server: &Server, peer: &str, lines: &[Vec<u8>]) -> Client {
    let name = match server.forwarded_header {
        ForwardedHeader::XForwardedFor => "x-forwarded-for",
        ForwardedHeader::Forwarded => "forwarded",
    };
    let lines: Vec<_> = lines
        .iter()
        .filter(|line| HeaderValue::from_bytes(line).is_ok())
        .map(|line| (name, &line[..]))
        .collect();
    let head = request(&lines);
    let peer = Peer {
        address: Some(peer_address(peer)),
        ..Peer::default()
    };
    Client::of(head.fields(), &peer, server)
}

/// Returns the address that a line of `X-Forwarded-For` names. A simple second implementation.
fn naive(line: &[u8]) -> Option<IpAddr> {
    let mut named = None;
    let line = line.trim_ascii();
    for element in line.rsplit(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
        if element.is_empty() {
            continue;
        }
        let text = str::from_utf8(element).ok()?;
        let alone = text.parse::<IpAddr>().ok();
        let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
        let with_port = || {
            let (before, port) = text.rsplit_once(':').filter(|(_, port)| !port.is_empty())?;
            let _ = port;
            match before.parse::<IpAddr>() {
                Ok(IpAddr::V4(address)) => Some(IpAddr::V4(address)),
                _ => None,
            }
        };
        let bracketed_with_port = || {
            let (before, port) = text.strip_prefix('[')?.split_once("]:")?;
            before.parse().ok().filter(|_| !port.is_empty())
        };
        let address = alone
            .or_else(bracketed)
            .or_else(with_port)
            .or_else(bracketed_with_port)?;
        let address = IpAddr::to_canonical(&address);
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
        prop_assert!(forwarded.via_proxy && forwarded.address.is_some());
        prop_assert_eq!(
            forwarded.address,
            forwarded.address.map(|address| address.to_canonical())
        );
        let split = line.iter().position(|byte| *byte == b',');
        if let Some(comma) = split.filter(|_| field == ForwardedHeader::XForwardedFor) {
            let lines = [line[..comma].to_vec(), line[comma + 1..].to_vec()];
            if lines
                .iter()
                .all(|line| HeaderValue::from_bytes(line).is_ok())
            {
                prop_assert_eq!(client(&server, PROXY, &lines), forwarded);
            }
        }
        if field == ForwardedHeader::XForwardedFor && HeaderValue::from_bytes(line).is_ok() {
            let expected = naive(line).or("10.0.0.1".parse().ok());
            prop_assert_eq!(forwarded.address, expected);
        }
    }
    Ok(())
}

#[test]
fn the_corpus_holds() {
    for folder in ["x-forwarded-for", "forwarded"] {
        for (name, line) in corpus(folder) {
            holds(&line).unwrap_or_else(|error| panic!("{folder}/{name}: {error}"));
        }
    }
}

#[test]
fn a_proxy_with_a_mapped_address_is_trusted() {
    let server = server(ForwardedHeader::XForwardedFor);
    let found = client(&server, "[::ffff:10.0.0.1]:9", &[b"198.51.100.1".to_vec()]);
    assert_eq!(found.address, "198.51.100.1".parse().ok());
}

#[test]
fn the_claim_of_a_client_is_to_its_left() {
    let named = |field, name: &str, line: &str| {
        let head = request(&[(name, line.as_bytes())]);
        let client = "203.0.113.7".parse().ok();
        let named = named_by_client(head.fields(), client, field)?;
        Some(String::from_utf8_lossy(named).into_owned())
    };
    for (line, expected) in [
        ("192.0.2.1, 203.0.113.7", Some("192.0.2.1")),
        ("x, 192.0.2.1,, 203.0.113.7, 10.0.0.1", Some("192.0.2.1")),
        ("203.0.113.7", None),
        ("192.0.2.1", None),
        ("", None),
    ] {
        let found = named(ForwardedHeader::XForwardedFor, "x-forwarded-for", line);
        assert_eq!(found.as_deref(), expected, "{line}");
    }
    let line = "for=192.0.2.1, for=\"203.0.113.7:80\"";
    let found = named(ForwardedHeader::Forwarded, "forwarded", line);
    assert_eq!(found.as_deref(), Some("for=192.0.2.1"));
}

#[test]
fn the_field_of_rfc_7239_is_read_as_it_says() {
    let server = server(ForwardedHeader::Forwarded);
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
    let peer = Peer {
        address: Some(peer_address(PROXY)),
        ..Peer::default()
    };
    let ignored = Client::of(head.fields(), &peer, &server);
    assert_eq!(ignored.address, "10.0.0.1".parse().ok());
}

fn address(trusted: bool) -> impl Strategy<Value = IpAddr> {
    let v4 = any::<u32>().prop_map(move |bits| {
        let first = if trusted { 10 } else { 203 };
        IpAddr::V4(Ipv4Addr::from_bits(bits >> 8 | first << 24))
    });
    let v6 = any::<u128>().prop_map(move |bits| {
        let first = if trusted { 0xfd } else { 0x20 };
        IpAddr::V6(Ipv6Addr::from_bits(bits >> 8 | first << 120))
    });
    prop_oneof![v4, v6]
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
            let (bare, with_port) = match address {
                IpAddr::V4(v4) if mapped => (
                    format!("[{}]", v4.to_ipv6_mapped()),
                    format!("[{}]:1", v4.to_ipv6_mapped()),
                ),
                IpAddr::V4(v4) => (v4.to_string(), format!("{v4}:4711")),
                IpAddr::V6(v6) => (format!("[{v6}]"), format!("[{v6}]:80")),
            };
            let node = if form == 0 { with_port } else { bare };
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
    let quoting = prop::collection::vec(
        prop::sample::select(vec!["\"", "\\", ",", ";", "for=6.6.6.6", "=", " ", "y="]),
        0..8,
    );
    let lie = prop_oneof![
        quoting.prop_map(|pieces| pieces.concat().into_bytes()),
        bytes(folder)
    ];
    lie.prop_filter("no field value", |lie| HeaderValue::from_bytes(lie).is_ok())
}

fn forwarded(
    field: ForwardedHeader,
    folder: &'static str,
) -> impl Strategy<Value = (IpAddr, Vec<Vec<u8>>)> {
    let hops = prop::collection::vec((element(field, true), any::<bool>()), 0..3);
    (lie(folder), any::<bool>(), element(field, false), hops).prop_map(
        |(lie, same_line, (client, element), hops)| {
            let mut lines = vec![lie];
            for ((_, element), same_line) in
                std::iter::once(((client, element), same_line)).chain(hops)
            {
                if same_line {
                    let line = lines.last_mut().unwrap();
                    line.extend_from_slice(b", ");
                    line.extend_from_slice(element.as_bytes());
                } else {
                    lines.push(element.into_bytes());
                }
            }
            (client, lines)
        },
    )
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
    fn a_lie_left_of_the_client_changes_nothing((expected, lines) in forwarded(ForwardedHeader::XForwardedFor, "x-forwarded-for")) {
        let found = client(&server(ForwardedHeader::XForwardedFor), PROXY, &lines);
        prop_assert_eq!(found.address, Some(expected));
    }

    #[test]
    fn a_quoted_lie_left_of_the_client_changes_nothing((expected, lines) in forwarded(ForwardedHeader::Forwarded, "forwarded")) {
        let found = client(&server(ForwardedHeader::Forwarded), PROXY, &lines);
        prop_assert_eq!(found.address, Some(expected), "{:?}", lines.iter().map(|line| String::from_utf8_lossy(line)).collect::<Vec<_>>());
    }
}
