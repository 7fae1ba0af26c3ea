//! Tests of field names, fields and trailers.

use proptest::prelude::*;
use testing::config;

use super::super::trailers::{NEVER_TRAILING, Trailers};
use super::*;
use crate::http::message::test_heads::request;

/// Every known name in its usual spelling, by its variant.
const KNOWN: [(FieldName, &str); 25] = [
    (FieldName::Authorization, "Authorization"),
    (FieldName::Challenge, "Proxy-Authenticate|WWW-Authenticate"),
    (FieldName::Connection, "Connection"),
    (FieldName::ContentLength, "Content-Length"),
    (FieldName::ContentType, "Content-Type"),
    (FieldName::Cookie, "Cookie"),
    (FieldName::Date, "Date"),
    (FieldName::Expect, "Expect"),
    (FieldName::Forwarded, "Forwarded"),
    (FieldName::GrpcTimeout, "grpc-timeout"),
    (FieldName::Host, "Host"),
    (FieldName::Hop, "HTTP2-Settings|Keep-Alive|Proxy-Connection"),
    (FieldName::Precondition, PRECONDITIONS),
    (FieldName::ProxyAuthorization, "Proxy-Authorization"),
    (FieldName::RateLimit, RATE_LIMITS),
    (FieldName::RateLimitPolicy, "RateLimit-Policy"),
    (FieldName::Te, "TE"),
    (FieldName::Trailer, "Trailer"),
    (FieldName::TransferEncoding, "Transfer-Encoding"),
    (FieldName::Upgrade, "Upgrade"),
    (FieldName::XForwardedFor, "X-Forwarded-For"),
    (FieldName::XForwardedHost, "X-Forwarded-Host"),
    (FieldName::XForwardedProto, "X-Forwarded-Proto"),
    (FieldName::XRateLimit, X_RATE_LIMITS),
    (FieldName::Origination, "X-Real-IP"),
];
const PRECONDITIONS: &str =
    "If-Match|If-Modified-Since|If-None-Match|If-Range|If-Unmodified-Since|Range";
const RATE_LIMITS: &str = "RateLimit|RateLimit-Limit|RateLimit-Remaining|RateLimit-Reset";
const X_RATE_LIMITS: &str =
    "X-Rate-Limit-Reset|X-RateLimit-Limit|X-RateLimit-Remaining|X-RateLimit-Retry-After";

/// Returns every known name, with its variant.
fn known_names() -> Vec<(&'static str, FieldName)> {
    let names = |(known, names): (_, &'static str)| names.split('|').map(move |name| (name, known));
    KNOWN.into_iter().flat_map(names).collect()
}

/// Looks a name up in the table. A simple second implementation.
fn naive(name: &str) -> FieldName {
    let find = |name: &str| {
        let mut known = known_names().into_iter();
        Some(known.find(|(known, _)| known.eq_ignore_ascii_case(name))?.1)
    };
    let name = name.to_ascii_lowercase();
    if let Some(found) = find(&name) {
        return found;
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
        _ if dashed.starts_with("if-") => find(&dashed).unwrap_or(FieldName::Other),
        _ => FieldName::Other,
    }
}

#[test]
fn names_are_known_however_they_are_written() {
    for (name, known) in known_names() {
        assert_eq!(FieldName::of(name.as_bytes()), known, "{name}");
        let similar = [name.to_owned() + "x", "x".to_owned() + name];
        for written in similar.into_iter().chain([name.replace('-', "_")]) {
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
    let mut all = FieldName::Other.bit();
    for (known, _) in KNOWN {
        assert_eq!(known.bit().count_ones(), 1);
        assert_eq!(known.bit() & all, 0, "{known:?}");
        all |= known.bit();
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
    assert!(fields.all(FieldName::Cookie).eq([b"a", b"b"]));
    assert!(fields.named("x").eq([&b"1"[..], b""]));
    let options = fields.elements(FieldName::Connection);
    assert!(options.eq([&b"x"[..], b"", b"y", b"close"]));
    assert!(fields.is_listed_in_connection(FieldName::Other, b"Y"));
    assert!(!fields.is_listed_in_connection(FieldName::Other, b"z"));
}

#[test]
fn essential_fields_are_kept_although_connection_lists_them() {
    let all = "host, content-length, authorization, cookie, x-forwarded-for, x-real-ip, te, date";
    let head = request(&[("connection", all.as_bytes())]);
    for name in all.split(", ") {
        let (known, fields) = (FieldName::of(name.as_bytes()), head.fields());
        let is_dropped = fields.is_listed_in_connection(known, name.as_bytes());
        assert_eq!(is_dropped, ["te", "date"].contains(&name), "{name}");
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
    let known = known_names().into_iter().map(|(name, _)| name.to_owned());
    let never = NEVER_TRAILING.map(|name| String::from_utf8(name.to_ascii_uppercase()).unwrap());
    let dropped = known.chain(never).chain(["x_forwarded_for".to_owned()]);
    let passing = "Checksum x-y Server-Timing ETag grpc-status Digest".split(' ');
    let cases = passing.map(|name| (name.to_owned(), true));
    for (name, passes) in cases.chain(dropped.map(|name| (name, false))) {
        let found = trailers(&format!("a: 1\r\n{name}: 2\r\nb:\r\n\r\n")).unwrap();
        let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
        let expected = if passes {
            vec!["a", name.as_str(), "b"]
        } else {
            vec!["a", "b"]
        };
        assert_eq!(names, expected, "{name}");
        assert!(!passes || found[1].1 == "2", "{name}");
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
        known in prop::sample::select(known_names()),
        upper in prop::collection::vec(any::<bool>(), 24),
        replaced in any::<prop::sample::Index>(),
        put in prop::option::of("[-_.!a-zA-Z0-9]{0,2}"),
    ) {
        let cased = known.0.chars().zip(upper).map(|(c, upper)| {
            if upper { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() }
        });
        let mut name: String = cased.collect();
        if let Some(put) = put {
            let index = replaced.index(name.len());
            name.replace_range(index..=index, &put);
        }
        prop_assert_eq!(FieldName::of(name.as_bytes()), naive(&name), "{}", name);
    }
}
