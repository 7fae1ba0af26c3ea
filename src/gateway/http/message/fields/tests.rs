//! Tests of field names, fields and trailers.

use proptest::prelude::*;
use testing::config;

use super::super::trailers::{NEVER_TRAILING, Trailers};
use super::*;
use crate::http::message::test_heads::request;

/// Every known name, in its usual spelling.
const KNOWN: [(&str, FieldName); 38] = [
    ("Authorization", FieldName::Authorization),
    ("Connection", FieldName::Connection),
    ("Content-Length", FieldName::ContentLength),
    ("Content-Type", FieldName::ContentType),
    ("Cookie", FieldName::Cookie),
    ("Date", FieldName::Date),
    ("Expect", FieldName::Expect),
    ("Forwarded", FieldName::Forwarded),
    ("Host", FieldName::Host),
    ("HTTP2-Settings", FieldName::Hop),
    ("If-Match", FieldName::Precondition),
    ("If-Modified-Since", FieldName::Precondition),
    ("If-None-Match", FieldName::Precondition),
    ("If-Range", FieldName::Precondition),
    ("If-Unmodified-Since", FieldName::Precondition),
    ("Range", FieldName::Precondition),
    ("Keep-Alive", FieldName::Hop),
    ("Proxy-Connection", FieldName::Hop),
    ("Proxy-Authenticate", FieldName::Challenge),
    ("WWW-Authenticate", FieldName::Challenge),
    ("Proxy-Authorization", FieldName::ProxyAuthorization),
    ("RateLimit", FieldName::RateLimit),
    ("RateLimit-Limit", FieldName::RateLimit),
    ("RateLimit-Policy", FieldName::RateLimitPolicy),
    ("RateLimit-Remaining", FieldName::RateLimit),
    ("RateLimit-Reset", FieldName::RateLimit),
    ("TE", FieldName::Te),
    ("Trailer", FieldName::Trailer),
    ("Transfer-Encoding", FieldName::TransferEncoding),
    ("Upgrade", FieldName::Upgrade),
    ("X-Forwarded-For", FieldName::XForwardedFor),
    ("X-Forwarded-Host", FieldName::XForwardedHost),
    ("X-Forwarded-Proto", FieldName::XForwardedProto),
    ("X-Rate-Limit-Reset", FieldName::XRateLimit),
    ("X-RateLimit-Limit", FieldName::XRateLimit),
    ("X-RateLimit-Remaining", FieldName::XRateLimit),
    ("X-RateLimit-Retry-After", FieldName::XRateLimit),
    ("X-Real-IP", FieldName::Origination),
];

/// Looks a name up in the table. A simple second implementation.
fn naive(name: &str) -> FieldName {
    let name = name.to_ascii_lowercase();
    let known = |(known, _): &&(&str, _)| known.eq_ignore_ascii_case(&name);
    if let Some((_, found)) = KNOWN.iter().find(known) {
        return *found;
    }
    let rest = ["x-ratelimit", "x-rate-limit"].map(|start| name.strip_prefix(start));
    let is_end = |rest: &str| rest.is_empty() || rest.starts_with('-');
    if rest.into_iter().flatten().any(is_end) {
        return FieldName::XRateLimit;
    }
    let dashed = name.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    match dashed.strip_prefix("x-forwarded-") {
        Some(rest) if !rest.is_empty() => FieldName::Origination,
        _ if dashed == "x-real-ip" => FieldName::Origination,
        _ if dashed.starts_with("if-") => {
            let known = KNOWN
                .iter()
                .find(|(known, _)| known.eq_ignore_ascii_case(&dashed));
            known.map_or(FieldName::Other, |(_, known)| *known)
        }
        _ => FieldName::Other,
    }
}

#[test]
fn names_are_known_however_they_are_written() {
    for (name, known) in KNOWN {
        assert_eq!(FieldName::of(name.as_bytes()), known, "{name}");
        for written in [
            format!("{name}x"),
            format!("x{name}"),
            name.replace('-', "_"),
        ] {
            let found = FieldName::of(written.as_bytes());
            assert_eq!(found, naive(&written), "{written}");
        }
    }
    let names =
        "X-Forwarded-Port|x_forwarded_for|X-Real_IP|X.Forwarded.For|X-Forwarded!Proto|x.real-ip";
    for name in names.split('|') {
        let found = FieldName::of(name.as_bytes());
        assert_eq!(found, FieldName::Origination, "{name}");
    }
    for name in ["", "x-forwarded-", "x-forwarded", "content_length", "host_"] {
        assert_eq!(FieldName::of(name.as_bytes()), FieldName::Other, "{name}");
    }
}

#[test]
fn each_known_name_has_a_bit_of_its_own() {
    let mut names: Vec<_> = KNOWN.iter().map(|(_, known)| *known).collect();
    names.push(FieldName::Other);
    names.dedup();
    for (index, one) in names.iter().enumerate() {
        assert_eq!(one.bit().count_ones(), 1);
        for other in &names[index + 1..] {
            assert_eq!(one.bit() == other.bit(), one == other, "{one:?} {other:?}");
        }
    }
}

#[test]
fn fields_are_found_by_what_is_known_of_them() {
    let head = request(&[
        ("Cookie", b"a"),
        ("x", b"1"),
        ("cookie", b"b"),
        ("Connection", b"x , ,y"),
        ("X", b""),
        ("connection", b"close"),
    ]);
    let fields = head.fields();
    assert!(fields.has(FieldName::Cookie) && !fields.has(FieldName::Host));
    assert_eq!(fields.first(FieldName::Cookie), Some(&b"a"[..]));
    assert_eq!(fields.first(FieldName::Host), None);
    let all: Vec<_> = fields.all(FieldName::Cookie).collect();
    assert_eq!(all, [b"a", b"b"]);
    let named: Vec<_> = fields.named("x").collect();
    assert_eq!(named, [&b"1"[..], b""]);
    let options: Vec<_> = fields.elements(FieldName::Connection).collect();
    assert_eq!(options, [&b"x"[..], b"", b"y", b"close"]);
    assert!(fields.is_listed_in_connection(FieldName::Other, b"Y"));
    assert!(!fields.is_listed_in_connection(FieldName::Other, b"z"));
}

#[test]
fn essential_fields_are_kept_although_connection_lists_them() {
    let all = "host, content-length, authorization, cookie, x-forwarded-for, x-real-ip, te, date";
    let head = request(&[("connection", all.as_bytes())]);
    for name in all.split(", ") {
        let known = FieldName::of(name.as_bytes());
        let away = head
            .fields()
            .is_listed_in_connection(known, name.as_bytes());
        assert_eq!(away, ["te", "date"].contains(&name), "{name}");
    }
}

#[test]
fn only_spaces_and_tabs_are_blanks() {
    for (text, expected) in [
        (&b" \t a b\t "[..], &b"a b"[..]),
        (b"\x0ca\x0c", b"\x0ca\x0c"),
        (b" \r", b"\r"),
        (b" \t", b""),
        (b"", b""),
    ] {
        assert_eq!(without_blanks(text), expected);
    }
}

fn trailers(section: &str) -> Option<Vec<(String, String)>> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let parsed = Trailers::parse(section.as_bytes())?;
    let fields = parsed.iter().map(|(name, value)| (text(name), text(value)));
    Some(fields.collect())
}

#[test]
fn trailers_for_framing_routing_or_credentials_are_dropped() {
    let passing = [
        "Checksum",
        "x-y",
        "Server-Timing",
        "ETag",
        "grpc-status",
        "Digest",
    ];
    let lines = format!("{}: 1\r\n", passing.join(": 1\r\n"));
    let expected: Vec<_> = passing
        .iter()
        .map(|name| ((*name).to_owned(), "1".to_owned()))
        .collect();
    assert_eq!(trailers(&format!("{lines}\r\n")), Some(expected));
    let mut never: Vec<String> = KNOWN.iter().map(|(name, _)| (*name).to_owned()).collect();
    never.extend(
        NEVER_TRAILING
            .iter()
            .map(|name| String::from_utf8(name.to_ascii_uppercase()).unwrap()),
    );
    never.push("x_forwarded_for".to_owned());
    for name in never {
        let found = trailers(&format!("a: 1\r\n{name}: 2\r\nb:\r\n\r\n")).unwrap();
        let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a", "b"], "{name}");
    }
    let mut pushed = Trailers::default();
    pushed.push(b":status", b"200");
    pushed.push(b"Host", b"a");
    assert!(pushed.is_empty());
    pushed.push(b"a", b"b");
    assert!(!pushed.is_empty());
}

#[test]
fn a_malformed_trailer_section_is_rejected_as_a_whole() {
    let cases = "|a: b|a: b\r\n|a: b\r\n\r\nc|a b\r\n\r\n|a: b\r\n c\r\n\r\n|a: \u{1}\r\n\r\n";
    for section in cases.split('|') {
        assert_eq!(trailers(section), None, "{section:?}");
    }
    assert_eq!(trailers("\r\n"), Some(Vec::new()));
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_name_is_known_as_the_table_knows_it(
        known in prop::sample::select(KNOWN.to_vec()),
        upper in prop::collection::vec(any::<bool>(), 24),
        at in any::<prop::sample::Index>(),
        put in prop::option::of("[-_.!a-zA-Z0-9]{0,2}"),
    ) {
        let cased = known.0.chars().zip(upper).map(|(c, upper)| {
            if upper { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() }
        });
        let mut name: String = cased.collect();
        if let Some(put) = put {
            let at = at.index(name.len());
            name.replace_range(at..=at, &put);
        }
        prop_assert_eq!(FieldName::of(name.as_bytes()), naive(&name), "{}", name);
    }
}
