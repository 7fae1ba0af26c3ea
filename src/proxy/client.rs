use std::net::{IpAddr, SocketAddr};

use actix_web::HttpRequest;
use actix_web::http::header::{FORWARDED, HeaderMap, HeaderName, X_FORWARDED_FOR};
use ipnet::IpNet;

use crate::config::{ForwardedHeader, Server};

/// Who sent a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Client {
    /// The other end of the connection; `None` on a unix socket.
    pub(super) peer: Option<IpAddr>,
    /// The client itself, `$remote_addr`: the peer, or whom trusted peers name.
    pub(super) address: Option<IpAddr>,
    /// Whether the peer's word on where the request came from is taken.
    pub(super) trusted: bool,
}

impl Client {
    /// The client of a request: the rightmost address, the peer's first, that is not a trusted proxy's. Where a trusted
    /// peer's field is garbage, or names nobody, it is the peer.
    pub(super) fn of(request: &HttpRequest, server: &Server) -> Self {
        let peer = request.peer_addr().map(|peer| peer.ip().to_canonical());
        let is_trusted = |address: &IpAddr| {
            server
                .trusted_proxies
                .iter()
                .any(|net: &IpNet| net.contains(address))
        };
        let trusted = peer.as_ref().is_some_and(is_trusted);
        let address = if trusted {
            named(request.headers(), server.forwarded_header, is_trusted).or(peer)
        } else {
            peer
        };
        Self {
            peer,
            address,
            trusted,
        }
    }
}

/// The rightmost address in the field that is not trusted; the leftmost where all are. `None` where there is none, or
/// something that is no address stands in the way.
fn named(
    headers: &HeaderMap,
    field: ForwardedHeader,
    is_trusted: impl Fn(&IpAddr) -> bool,
) -> Option<IpAddr> {
    let (name, address): (HeaderName, fn(&str) -> Option<IpAddr>) = match field {
        ForwardedHeader::XForwardedFor => (X_FORWARDED_FOR, read_node),
        ForwardedHeader::Forwarded => (FORWARDED, read_element),
    };
    let mut lines = Vec::new();
    for line in headers.get_all(name) {
        lines.push(line.to_str().ok()?);
    }
    let mut leftmost = None;
    for element in lines
        .iter()
        .rev()
        .flat_map(|line| split_list(line).into_iter().rev())
    {
        if element.is_empty() {
            continue;
        }
        let found = address(element)?;
        if !is_trusted(&found) {
            return Some(found);
        }
        leftmost = Some(found);
    }
    leftmost
}

/// The elements of a list, split at the commas that do not stand in quotes (RFC 9110, section 5.6.1).
fn split_list(line: &str) -> Vec<&str> {
    let (mut quoted, mut escaped) = (false, false);
    let at_comma = |c: char| {
        let comma = c == ',' && !quoted;
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ => {}
        }
        comma
    };
    line.split(at_comma).map(str::trim).collect()
}

/// The `for` of one element of `Forwarded` (RFC 7239, section 4).
fn read_element(element: &str) -> Option<IpAddr> {
    let pairs = element
        .split(';')
        .filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = { pairs }.find(|(name, _)| name.eq_ignore_ascii_case("for"))?;
    let unquoted = value
        .strip_prefix('"')
        .and_then(|value| value.strip_suffix('"'));
    read_node(unquoted.unwrap_or(value))
}

/// An address, with a port or without: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:80`.
fn read_node(text: &str) -> Option<IpAddr> {
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .unwrap_or(text);
    let address = bare.parse().ok().or_else(|| {
        text.parse()
            .ok()
            .map(|with_port: SocketAddr| with_port.ip())
    })?;
    Some(IpAddr::to_canonical(&address))
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn client(peer: &str, field: ForwardedHeader, lines: &[(&str, &str)]) -> String {
        let mut server = crate::config::parse(
            "[origins.a]\nservers = [\"http://127.0.0.1:1\"]\n[[routes]]\npath = \"/\"\norigin = \"a\"\n\
             [server]\ntrusted_proxies = [\"10.0.0.0/8\", \"fd00::/8\"]\n",
            std::path::Path::new("gateway.toml"),
            false,
        )
        .unwrap()
        .server;
        server.forwarded_header = field;
        let mut request = TestRequest::default().peer_addr(peer.parse().unwrap());
        for line in lines {
            request = request.append_header(*line);
        }
        Client::of(&request.to_http_request(), &server)
            .address
            .unwrap()
            .to_string()
    }

    #[test]
    fn the_client_is_the_rightmost_address_that_is_not_trusted() {
        let cases: [(&str, &[&str], &str); 14] = [
            ("192.0.2.1:9", &["198.51.100.1"], "192.0.2.1"),
            ("10.0.0.1:9", &[], "10.0.0.1"),
            ("10.0.0.1:9", &["198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1:9", &["203.0.113.9, 198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1:9", &["198.51.100.1, 10.9.9.9"], "198.51.100.1"),
            (
                "10.0.0.1:9",
                &["198.51.100.1", "10.9.9.9, 10.8.8.8"],
                "198.51.100.1",
            ),
            ("10.0.0.1:9", &["10.7.7.7, 10.8.8.8"], "10.7.7.7"),
            ("10.0.0.1:9", &["198.51.100.1:4711"], "198.51.100.1"),
            ("10.0.0.1:9", &["[2001:db8::1]:4711"], "2001:db8::1"),
            ("10.0.0.1:9", &["2001:db8::1"], "2001:db8::1"),
            ("10.0.0.1:9", &["::ffff:198.51.100.1"], "198.51.100.1"),
            ("[::ffff:10.0.0.1]:9", &["198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1:9", &["nonsense"], "10.0.0.1"),
            ("10.0.0.1:9", &["198.51.100.1, , "], "198.51.100.1"),
        ];
        for (peer, lines, expected) in cases {
            let lines: Vec<_> = lines
                .iter()
                .map(|line| ("x-forwarded-for", *line))
                .collect();
            assert_eq!(
                client(peer, ForwardedHeader::XForwardedFor, &lines),
                expected,
                "{peer} {lines:?}"
            );
        }
    }

    #[test]
    fn the_field_of_rfc_7239_is_read_as_it_says() {
        let cases = [
            ("for=198.51.100.1", "198.51.100.1"),
            (
                "For=\"198.51.100.1:4711\";proto=https;by=203.0.113.43",
                "198.51.100.1",
            ),
            ("proto=http; for=\"[2001:db8::1]:80\"", "2001:db8::1"),
            ("for=198.51.100.1, for=10.2.3.4", "198.51.100.1"),
            ("for=198.51.100.1;host=\"a,b\"", "198.51.100.1"),
            ("for=unknown", "10.0.0.1"),
            ("for=198.51.100.1, for=_hidden", "10.0.0.1"),
            ("by=198.51.100.1", "10.0.0.1"),
        ];
        for (line, expected) in cases {
            let found = client(
                "10.0.0.1:9",
                ForwardedHeader::Forwarded,
                &[("forwarded", line)],
            );
            assert_eq!(found, expected, "{line}");
        }
        let ignored = client(
            "10.0.0.1:9",
            ForwardedHeader::Forwarded,
            &[("x-forwarded-for", "198.51.100.1")],
        );
        assert_eq!(ignored, "10.0.0.1");
    }
}
