//! Builds keys of requests: for zones, shared gates, server choice, and collapsing.
//!
//! A key is built from a template of variables such as `$remote_addr`, which mean the same as in
//! nginx. A *zone* limits each key; a *shared gate* limits an origin, and gives each key its share.

use std::cell::Cell;
use std::io::Write;
use std::net::IpAddr;

use config::{KeyTemplate, MAX_KEY_SIZE, Route, Variable, Zone, target};
use limit::stable_hash;

use super::cookies;
use super::request_info::RequestInfo;
use crate::http::downstream::ClientCertificate;
use crate::http::message::FieldName;
use crate::observe::throttle::Throttle;
use crate::time::clock;
use crate::zone::Key;

thread_local! {
    /// Buffer in which keys are built.
    ///
    /// Its capacity is that of the longest key so far, at most the size of a request's head.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Reason why a zone does not limit a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotLimited {
    /// The client is exempt.
    Exempt,
    /// The key is empty.
    NoKey,
}

/// Builds a request's key for a zone.
///
/// Returns `Err` if the zone does not limit the request.
pub(super) fn for_zone(zone: &Zone, info: &RequestInfo, route: &Route) -> Result<Key, NotLimited> {
    let is_exempt = |address| zone.is_exempt(address);
    if info.client.address.is_some_and(is_exempt) {
        return Err(NotLimited::Exempt);
    }
    build(zone, info, route).ok_or(NotLimited::NoKey)
}

/// Builds the key by which a request shares the gate of its origin.
///
/// The key is empty if the zone's template is. `exempt` of the zone has no effect here.
pub(super) fn at_gate(zone: &Zone, info: &RequestInfo, route: &Route) -> Key {
    build(zone, info, route).unwrap_or_default()
}

/// Returns the hash of [`at_gate`] without allocating the key.
pub(super) fn hash_at_gate(zone: &Zone, info: &RequestInfo, route: &Route) -> u64 {
    let cut = |address| zone.cut(address);
    with_bytes(&zone.key, cut, info, route, |bytes| {
        stable_hash(&bytes[..bytes.len().min(MAX_KEY_SIZE)])
    })
}

/// Returns the bytes of a key that is built from any template.
pub(super) fn bytes(template: &KeyTemplate, info: &RequestInfo, route: &Route) -> Vec<u8> {
    with_bytes(template, |address| address, info, route, <[u8]>::to_vec)
}

/// Returns the hash of a key that is built from any template; `None` if the key is empty.
pub(super) fn hash(template: &KeyTemplate, info: &RequestInfo, route: &Route) -> Option<u64> {
    let hash = |bytes: &[u8]| (!bytes.is_empty()).then(|| stable_hash(bytes));
    with_bytes(template, |address| address, info, route, hash)
}

/// Builds a request's key for a zone; `None` if the key is empty.
fn build(zone: &Zone, info: &RequestInfo, route: &Route) -> Option<Key> {
    let cut = |address| zone.cut(address);
    with_bytes(&zone.key, cut, info, route, |bytes| to_key(bytes, zone))
}

/// Fills a template and returns the result of `read` for its bytes.
///
/// `cut` reduces an address to its prefix.
fn with_bytes<T>(
    template: &KeyTemplate,
    cut: impl Fn(IpAddr) -> IpAddr,
    info: &RequestInfo,
    route: &Route,
    read: impl FnOnce(&[u8]) -> T,
) -> T {
    let mut bytes = SCRATCH.take();
    bytes.clear();
    template.fill_into(&mut bytes, |variable, key| {
        match (variable, info.client.address) {
            (Variable::RemoteAddr, Some(address)) => write_address(key, cut(address)),
            (variable, _) => append(key, variable, info, route),
        }
    });
    let result = read(&bytes);
    SCRATCH.set(bytes);
    result
}

/// Builds a key from its bytes. Truncates a key that is too long, and logs the truncation.
///
/// Returns `None` for an empty key.
fn to_key(bytes: &[u8], zone: &Zone) -> Option<Key> {
    static TOO_LONG: Throttle = Throttle::new();
    // Logged as the field `length`.
    let length = bytes.len();
    let bytes = &bytes[..bytes.len().min(MAX_KEY_SIZE)];
    if length > MAX_KEY_SIZE
        && let Some(hidden) = TOO_LONG.show(clock::now())
    {
        let zone = &zone.name;
        tracing::warn!(
            zone,
            length,
            hidden,
            "key longer than 65,535 bytes: truncated"
        );
    }
    (!bytes.is_empty()).then(|| Key::from(bytes))
}

/// Appends the value of a variable.
pub(super) fn append(key: &mut Vec<u8>, variable: &Variable, info: &RequestInfo, route: &Route) {
    match variable {
        Variable::RemoteAddr => match info.client.address {
            Some(address) => write_address(key, address),
            // All clients of a unix socket count as one client, as in nginx.
            None => key.extend_from_slice(b"unix:"),
        },
        Variable::Host => key.extend_from_slice(info.host.as_bytes()),
        Variable::Uri => key.extend_from_slice(&info.path),
        Variable::RequestUri => {
            let target = info.head.path_and_query();
            key.extend_from_slice(if target.is_empty() { b"/" } else { target });
        }
        Variable::RequestMethod => key.extend_from_slice(info.head.method()),
        Variable::Scheme => key.extend_from_slice(info.peer().scheme().as_bytes()),
        Variable::ServerPort => write_number(key, info.peer().local_port),
        Variable::SslClientVerify => key.extend_from_slice(match info.peer().certificate() {
            Some(_) => b"SUCCESS",
            None if info.peer().is_encrypted => b"NONE",
            None => b"",
        }),
        Variable::SslClientFingerprint => append_fact(key, info, |it| &it.fingerprint),
        Variable::SslClientSubject => append_fact(key, info, |it| &it.subject),
        Variable::SslClientSerial => append_fact(key, info, |it| &it.serial),
        // The origin gets the host of the target, whatever the field contains.
        Variable::Header(name) if name == "host" => {
            key.extend_from_slice(info.head.named_host().unwrap_or_default());
        }
        Variable::Header(name) => {
            key.extend_from_slice(&info.joined(name).unwrap_or_default());
        }
        Variable::Cookie(name) => {
            let lines = info.fields().all(FieldName::Cookie);
            key.extend_from_slice(&cookies::first(lines, name).unwrap_or_default());
        }
        Variable::Arg(name) => key.extend_from_slice(&target::argument(info.query(), name)),
        Variable::Jwt { name, claim } => {
            let jwt = route.jwt.iter().find(|jwt| jwt.name == *name);
            if let Some((jwt, token)) = jwt.zip(info.bearer_token()) {
                let now = clock::wall().as_nanos() / 1_000_000_000;
                jwt.verifier.add_claim(token, claim, now, key);
            }
        }
        Variable::Path(group) => key.extend_from_slice(route.path.capture(&info.path, group)),
    }
}

/// Appends a fact of the client's certificate, if it has one.
fn append_fact(
    key: &mut Vec<u8>,
    info: &RequestInfo,
    fact: impl FnOnce(&ClientCertificate) -> &String,
) {
    if let Some(certificate) = info.peer().certificate() {
        key.extend_from_slice(fact(certificate).as_bytes());
    }
}

/// Maximum length of an address as text: IPv6, eight groups of four digits.
pub(super) const MAX_ADDRESS: usize = 39;

/// Writes an address into `buffer`. Returns its text.
pub(super) fn address_text(address: IpAddr, buffer: &mut [u8; MAX_ADDRESS]) -> &[u8] {
    let mut rest = &mut buffer[..];
    write_address(&mut rest, address);
    let length = MAX_ADDRESS - rest.len();
    &buffer[..length]
}

/// Appends an address as text.
///
/// Most keys are an address. The standard library's formatting would take longer than the lookup of
/// the key.
fn write_address(out: &mut impl Write, address: IpAddr) {
    // Writing to memory that has room does not fail.
    let _written = match address {
        IpAddr::V4(address) => {
            let [first, rest @ ..] = address.octets();
            write_number(out, first);
            for octet in rest {
                let _written = out.write_all(b".");
                write_number(out, octet);
            }
            Ok(())
        }
        IpAddr::V6(address) => write!(out, "{address}"),
    };
}

/// Appends a number as text.
fn write_number(out: &mut impl Write, number: impl itoa::Integer) {
    let _written = out.write_all(itoa::Buffer::new().format(number).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::downstream::{ConnectionContext, Peer};
    use crate::http::message::RequestHead;
    use crate::http::message::test_heads;

    /// Returns the key of a request by a template, in a zone with these other fields.
    fn key_of(template: &str, zone: &str, (head, peer): (RequestHead, &str)) -> Option<String> {
        let zone = format!("[zones.z]\nrate = \"1r/s\"\nkey = \"{template}\"\n{zone}");
        let settings = crate::test_settings::with(&zone);
        let context = ConnectionContext::new(Peer::at(peer), None);
        let info = RequestInfo::new(&head, &context, &settings.server);
        let key = for_zone(&settings.zones[0], &info, &settings.routes[0]).ok();
        key.map(|key| String::from_utf8(key.to_vec()).unwrap())
    }

    const FIELDS: [(&str, &[u8]); 4] = [
        ("host", b"Example.COM:8080"),
        ("x-api-key", b"k1"),
        ("X-Api-Key", b"k2"),
        ("cookie", b"a=b; session=abc; session=def"),
    ];

    fn request() -> (RequestHead, &'static str) {
        with("x-other", b"")
    }

    /// Returns a request with this value of a field, and the address of its client.
    fn with(name: &str, value: &[u8]) -> (RequestHead, &'static str) {
        let mut fields = FIELDS.to_vec();
        fields.retain(|(other, _)| *other != name);
        fields.push((name, value));
        let line = "GET /A%20b/../c?x=1&Token=two&token=three HTTP/1.1";
        (test_heads::head(line, &fields), "192.0.2.7:1234")
    }

    #[test]
    fn an_address_is_written_as_the_standard_library_does() {
        for text in "0.0.0.0|9.10.99.100|255.255.255.255|::|::ffff:1.2.3.4".split('|') {
            let mut key = b"a".to_vec();
            write_address(&mut key, text.parse().unwrap());
            assert_eq!(String::from_utf8(key).unwrap(), format!("a{text}"));
        }
    }

    #[test]
    fn each_variable_is_what_it_is_in_nginx() {
        let cases = [
            ("$remote_addr", "192.0.2.7"),
            ("$host", "example.com"),
            ("$uri", "/c"),
            ("$request_uri", "/A%20b/../c?x=1&Token=two&token=three"),
            ("$request_method", "GET"),
            ("$scheme", "http"),
            ("$http_x_api_key", "k1, k2"),
            ("$cookie_session", "abc"),
            ("$arg_token", "two"),
            ("$arg_x", "1"),
            ("$host:$http_x_api_key!", "example.com:k1, k2!"),
            ("all", "all"),
        ];
        for (template, expected) in cases {
            let found = key_of(template, "", request());
            assert_eq!(found.as_deref(), Some(expected), "{template}");
        }
    }

    #[test]
    fn a_host_of_any_bytes_is_a_host_and_a_dot_at_its_end_is_none() {
        let host = |value: &[u8]| key_of("$host", "", with("host", value));
        assert_eq!(host(b"a.example.").as_deref(), Some("a.example"));
        assert_eq!(host(b"\xff.example").as_deref(), Some("\\xff.example"));
    }

    #[test]
    fn a_key_that_comes_out_empty_is_none_and_one_too_long_is_cut() {
        for template in "$http_none|$cookie_none|$arg_none|$http_none$arg_none".split('|') {
            assert_eq!(key_of(template, "", request()), None, "{template}");
        }
        for length in [65_535, 65_536] {
            let request = with("x-long", "k".repeat(length).as_bytes());
            let found = key_of("$http_x_long", "", request);
            assert_eq!(found, Some("k".repeat(65_535)));
        }
    }

    #[test]
    fn addresses_of_ipv6_are_cut_to_their_prefix() {
        let exact = "ipv6_prefix = 128";
        let cases = [
            ("", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            (exact, "2001:db8:1:2:3:4:5:6", "2001:db8:1:2:3:4:5:6"),
            ("ipv6_prefix = 48", "2001:db8:1:2:3:4:5:6", "2001:db8:1::"),
            ("ipv6_prefix = 0", "2001:db8:1:2:3:4:5:6", "::"),
            ("", "::ffff:192.0.2.9", "192.0.2.9"),
            ("", "64:ff9b::192.0.2.9", "192.0.2.9"),
            (exact, "64:ff9b::1:192.0.2.9", "64:ff9b::1:c000:209"),
        ];
        for (zone, peer, expected) in cases {
            let request = (request().0, &*format!("[{peer}]:9"));
            let found = key_of("$remote_addr", zone, request);
            assert_eq!(found.as_deref(), Some(expected), "{zone} {peer}");
        }
    }

    #[test]
    fn exempt_clients_are_not_limited() {
        let exempt = "exempt = [\"192.0.2.0/24\"]";
        assert_eq!(key_of("$host", exempt, request()), None);
        assert!(key_of("$host", "exempt = [\"198.51.100.0/24\"]", request()).is_some());
    }
}
