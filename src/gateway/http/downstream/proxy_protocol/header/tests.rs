//! Tests of the PROXY protocol's parser.

use super::*;

fn proxied(source: &str, destination: &str) -> ProxyHeader {
    ProxyHeader::Proxied {
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
    }
}

/// Builds a version 2 header from a command, a protocol and a block.
fn binary(command: u8, protocol: u8, block: &[u8]) -> Vec<u8> {
    let length = u16::try_from(block.len()).unwrap().to_be_bytes();
    [BINARY_START, &[command, protocol], &length, block].concat()
}

const V4: [u8; 12] = [192, 0, 2, 1, 198, 51, 100, 2, 0x12, 0x67, 0x01, 0xbb];

#[test]
fn a_text_names_two_addresses_or_none() {
    let widest = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
    let six = proxied(&format!("[{widest}]:65535"), "[::ffff:192.0.2.1]:65535");
    let own = ProxyHeader::Own;
    for (text, header) in [
        (&*format!("TCP6 {widest} ::ffff:192.0.2.1 65535 65535"), six),
        ("UNKNOWN", own),
        ("UNKNOWN anything at all\u{e9}", own),
        (&format!("UNKNOWN {widest} {widest} 65535 65535"), own),
    ] {
        let text = format!("PROXY {text}\r\n");
        let found = parse(format!("{text}GET / HTTP/1.1\r\n").as_bytes());
        assert_eq!(found, Ok(Some((header, text.len()))), "{text}");
    }
}

#[test]
fn a_text_that_is_not_exact_is_refused() {
    let address = "its line does not name two addresses and ports";
    let texts = "TCP4 192.0.2.1 198.51.100.2 4711|TCP4 192.0.2.1 198.51.100.2 4711 443 |\
        TCP4  192.0.2.1 198.51.100.2 4711 443|TCP4 192.0.2.1 198.51.100.2 4711 443 1|\
        TCP4 192.0.2.01 198.51.100.2 4711 443|TCP4 192.0.2 198.51.100.2 4711 443|\
        TCP4 ::1 ::1 4711 443|TCP6 192.0.2.1 198.51.100.2 4711 443|\
        TCP6 fe80::1%eth0 ::1 4711 443|TCP6 [::1] ::1 4711 443|\
        TCP4 192.0.2.1 198.51.100.2 65536 443|TCP4 192.0.2.1 198.51.100.2 +4711 443|\
        TCP4 192.0.2.1 198.51.100.2 04711 443|TCP4 192.0.2.1 198.51.100.2 -1 443|\
        TCP4 192.0.2.1 198.51.100.2 4711 |TCP4 192.0.2.1\t198.51.100.2 4711 443|\
        TCP4 192.0.2.1 198.51.100.2 4711 443\r|UDP4 192.0.2.1 198.51.100.2 4711 443|\
        tcp4 192.0.2.1 198.51.100.2 4711 443|UNKNOWNS||TCP4 \u{e9} 198.51.100.2 4711 443";
    for text in texts.split('|') {
        let line = format!("PROXY {text}\r\n");
        assert_eq!(parse(line.as_bytes()), Err(Malformed(address)), "{text:?}");
    }
    let end = Err(Malformed("its line does not end with CR and LF"));
    assert_eq!(parse(b"PROXY UNKNOWN\n"), end);
    assert_eq!(parse(b"PROXY UNKNOWN\nGET / HTTP/1.1\r\n"), end);
}

#[test]
fn a_text_has_107_bytes_at_most() {
    let text_of = |length| format!("PROXY UNKNOWN {}\r\n", "a".repeat(length - 16));
    for length in [106, 107] {
        let found = parse(text_of(length).as_bytes());
        assert_eq!(found, Ok(Some((ProxyHeader::Own, length))));
    }
    let text = text_of(108);
    assert_eq!(parse(text.as_bytes()), Err(TooLong));
    assert_eq!(parse(&text.as_bytes()[..106]), Ok(None));
    assert_eq!(parse(&text.as_bytes()[..107]), Err(TooLong));
}

#[test]
fn another_beginning_is_refused_at_its_first_wrong_byte() {
    for (bytes, wrong) in [
        (&b"GET / HTTP/1.1\r\n"[..], 0),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 2),
        (b"PROXY_", 5),
        (b"proxy ", 0),
        (b"\x16\x03\x01", 0),
        (b"\r\n\r\nGET /", 4),
        (b"\r\n\r\n\0\r\nQUIT\r", 11),
        (b" PROXY UNKNOWN\r\n", 0),
    ] {
        assert_eq!(parse(&bytes[..wrong]), Ok(None), "{bytes:?}");
        assert_eq!(parse(&bytes[..=wrong]), Err(Missing), "{bytes:?}");
    }
}

#[test]
fn a_binary_header_names_two_addresses_or_none() {
    let mut v6 = [0; 36];
    v6[..4].copy_from_slice(&[0x20, 1, 0xd, 0xb8]);
    (v6[15], v6[31]) = (1, 1);
    v6[32..].copy_from_slice(&[0x12, 0x67, 0x01, 0xbb]);
    let six = proxied("[2001:db8::1]:4711", "[::1]:443");
    let own = ProxyHeader::Own;
    for (command, protocol, block, header) in [
        (0x21, 0x21, &v6[..], six),
        // No addresses, or not those of a stream over IP.
        (0x21, 0x00, &[], own),
        (0x21, 0x00, &[1, 2, 3], own),
        (0x21, 0x12, &V4, own),
        (0x21, 0x22, &v6, own),
        (0x21, 0x31, &[0; 216], own),
        // The proxy's own connection: the bytes after the command have no meaning.
        (0x20, 0x00, &[], own),
        (0x20, 0x11, &V4, own),
        (0x20, 0x11, &[1, 2, 3], own),
        (0x20, 0xff, &[1, 2, 3], own),
    ] {
        let bytes = binary(command, protocol, block);
        let found = parse(&[&bytes[..], b"GET /"].concat());
        let expected = Ok(Some((header, bytes.len())));
        assert_eq!(found, expected, "{command:x} {protocol:x} {block:?}");
        for end in 0..bytes.len() {
            assert_eq!(parse(&bytes[..end]), Ok(None));
        }
    }
}

#[test]
fn a_binary_header_whose_lengths_are_wrong_is_refused() {
    let too_short = Malformed("it is too short for its addresses");
    let version = Malformed("it has an unknown version or command");
    let family = Malformed("it has an unknown family or transport");
    let field = Malformed("a field in it does not end within it");
    let after = |more: &[u8]| [&V4[..], more].concat();
    for (command, protocol, block, error) in [
        (0x21, 0x11, &V4[..11], too_short),
        (0x21, 0x21, &[0; 35], too_short),
        (0x21, 0x31, &[0; 215], too_short),
        (0x21, 0x11, &[], too_short),
        (0x11, 0x11, &V4, version),
        (0x31, 0x11, &V4, version),
        (0x22, 0x11, &V4, version),
        (0x2f, 0x11, &V4, version),
        (0x21, 0x41, &V4, family),
        (0x21, 0x13, &V4, family),
        (0x21, 0x03, &V4, family),
        (0x21, 0x11, &after(&[4]), field),
        (0x21, 0x11, &after(&[4, 0]), field),
        (0x21, 0x11, &after(&[4, 0, 1]), field),
        (0x21, 0x11, &after(&[4, 0xff, 0xff, 0]), field),
        (0x21, 0x11, &after(&[4, 0, 0, 4, 0, 2, 1]), field),
        (0x21, 0x11, &after(&[3, 0, 4, 1, 2, 3, 4]), Checksum),
        (0x21, 0x11, &after(&[3, 0, 3, 1, 2, 3]), Checksum),
        (0x21, 0x11, &after(&[3, 0, 0]), Checksum),
    ] {
        let found = parse(&binary(command, protocol, block));
        assert_eq!(found, Err(error), "{command:x} {protocol:x} {block:?}");
    }
    let longest = binary(0x20, 0, &[0; MAX - 16]);
    assert_eq!(parse(&longest), Ok(Some((ProxyHeader::Own, MAX))));
    // A header that is too long is rejected before its end arrives.
    let longer = binary(0x20, 0, &[0; MAX - 15]);
    assert_eq!(parse(&longer), Err(TooLong));
    assert_eq!(parse(&longer[..16]), Err(TooLong));
}

#[test]
fn a_checksum_covers_all_bytes_but_its_own() {
    // Test vectors of RFC 3720, appendix B.4.
    assert_eq!(crc32c([0; 32].into_iter()), 0x8a91_36aa);
    assert_eq!(crc32c([0xff; 32].into_iter()), 0x62a8_ab43);
    assert_eq!(crc32c(0..32), 0x46dd_794e);
    assert_eq!(crc32c("123456789".bytes()), 0xe306_9283);

    // After the addresses come three fields, each with a type, a length of two bytes, and a value.
    // Type 4 is without effect, type 3 is the checksum, and type 5 is empty here. The header has 16
    // bytes before the block, and the addresses have 12, so the first field begins at byte 28.
    let block = [&V4[..], &[4, 0, 1, 9, 3, 0, 4, 0, 0, 0, 0, 5, 0, 0]].concat();
    let mut bytes = binary(0x21, 0x11, &block);
    let sum = crc32c(bytes.iter().copied());
    // The checksum's four bytes are before the last field, of three bytes.
    let start = bytes.len() - 7;
    bytes[start..start + 4].copy_from_slice(&sum.to_be_bytes());
    let header = proxied("192.0.2.1:4711", "198.51.100.2:443");
    assert_eq!(parse(&bytes), Ok(Some((header, bytes.len()))));
    for index in 16..bytes.len() {
        for bit in 0..8 {
            let mut bytes = bytes.clone();
            bytes[index] ^= 1 << bit;
            // A changed type or length of the first two fields can hide the checksum. The header is
            // valid then.
            let is_hidden = (28..31).contains(&index) || (32..35).contains(&index);
            assert!(is_hidden || parse(&bytes).is_err(), "{index} {bit}");
        }
    }
}

mod properties {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;

    /// Checks that more bytes never change a result, and fewer bytes are at most incomplete.
    fn holds(bytes: &[u8]) -> Result<(), TestCaseError> {
        let shown = String::from_utf8_lossy(bytes);
        let ends = (0..bytes.len()).step_by(1 + bytes.len() / 200);
        let mut known = Ok(None);
        for end in ends.chain([bytes.len()]) {
            let found = parse(&bytes[..end]);
            prop_assert!(known == Ok(None) || known == found, "{} {}", end, shown);
            if let Ok(Some((_, length))) = found {
                prop_assert!(length <= end);
                prop_assert_eq!(parse(&bytes[..length]), found);
                prop_assert_eq!(parse(&bytes[..length - 1]), Ok(None));
            }
            known = found;
        }
        // An incomplete header has a bounded length.
        prop_assert!(known != Ok(None) || bytes.len() < MAX);
        Ok(())
    }

    testing::property_of_bytes!(any_bytes_hold, "proxy-protocol", holds);

    /// Generates two IP addresses of the same family.
    fn addresses() -> impl Strategy<Value = [IpAddr; 2]> {
        let mapped = any::<Ipv4Addr>().prop_map(|ip| ip.to_ipv6_mapped());
        let v6 = prop_oneof![any::<Ipv6Addr>(), mapped];
        prop_oneof![
            any::<[Ipv4Addr; 2]>().prop_map(|both| both.map(IpAddr::V4)),
            prop::array::uniform2(v6).prop_map(|both| both.map(IpAddr::V6)),
        ]
    }

    proptest! {
        #![proptest_config(testing::config())]

        #[test]
        fn any_addresses_are_read_as_written(
            [from, to] in addresses(),
            ports: [u16; 2],
            fields in prop::collection::vec((4_u8.., prop::collection::vec(any::<u8>(), 0..300)), 0..4),
            rest: Vec<u8>,
        ) {
            let header = ProxyHeader::Proxied {
                source: (from, ports[0]).into(),
                destination: (to, ports[1]).into(),
            };
            let family = if from.is_ipv4() { "TCP4" } else { "TCP6" };
            let text = format!("PROXY {family} {from} {to} {} {}\r\n", ports[0], ports[1]);
            let mut block = Vec::new();
            for ip in [from, to] {
                match ip {
                    IpAddr::V4(ip) => block.extend(ip.octets()),
                    IpAddr::V6(ip) => block.extend(ip.octets()),
                }
            }
            block.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
            for (kind, value) in &fields {
                block.push(*kind);
                block.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
                block.extend(value);
            }
            let bytes = binary(0x21, if from.is_ipv4() { 0x11 } else { 0x21 }, &block);
            for written in [text.as_bytes(), &bytes] {
                let whole = [written, &rest].concat();
                prop_assert_eq!(parse(&whole), Ok(Some((header, written.len()))));
                holds(&whole)?;
            }
        }
    }
}
