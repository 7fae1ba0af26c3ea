use std::borrow::Cow;
use std::net::Ipv6Addr;

use http::HeaderMap;
use http::header::{CONTENT_LENGTH, EXPECT, HOST, HeaderValue};
use http::request::Parts;
use hyper::{Method, Version};

use super::client::Client;
use crate::access::escape;
use crate::clients::Peer;
use crate::config::Server;
use crate::target;

/// A request as it came, with what is read off it once: who sent it and what for.
pub(super) struct Arrival<'a> {
    pub(super) head: &'a Parts,
    pub(super) peer: &'a Peer,
    pub(super) client: Client,
    /// Without a port, in lower case; empty where the request names none.
    pub(super) host: String,
    /// As it is compared: decoded and resolved.
    pub(super) path: Cow<'a, [u8]>,
}

/// What makes a request one that the gateway does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    /// It wants a tunnel.
    Connect,
    /// It names no host, several, or one that is none (RFC 9112, section 3.2).
    Host,
    /// It asks something else than `OPTIONS` of the whole server (RFC 9112, section 3.2.4).
    Target,
    /// It tells several lengths. Of HTTP/1 the framing was looked at before.
    Length,
    /// It expects something else than `100-continue` (RFC 9110, section 10.1.1).
    Expectation,
}

impl<'a> Arrival<'a> {
    pub(super) fn new(head: &'a Parts, peer: &'a Peer, server: &Server) -> Self {
        // What is asked of the whole server is asked of what has the whole of it.
        let path = match head.uri.path() {
            "*" => "/",
            path => path,
        };
        Self {
            head,
            peer,
            client: Client::of(&head.headers, peer, server),
            host: host(head),
            path: target::path(path),
        }
    }

    pub(super) fn headers(&self) -> &'a HeaderMap {
        &self.head.headers
    }

    /// Why the request is not taken, if it is not.
    pub(super) fn unfit(&self) -> Option<Unfit> {
        if self.head.method == Method::CONNECT {
            return Some(Unfit::Connect);
        }
        if !self.names_a_host() {
            return Some(Unfit::Host);
        }
        if self.head.uri.path() == "*" && self.head.method != Method::OPTIONS {
            return Some(Unfit::Target);
        }
        let mut lengths = self.headers().get_all(CONTENT_LENGTH).iter();
        if let Some(first) = lengths.next()
            && lengths.any(|length| length != first)
        {
            return Some(Unfit::Length);
        }
        let known =
            |expected: &HeaderValue| expected.as_bytes().eq_ignore_ascii_case(b"100-continue");
        let mut expected = self.headers().get_all(EXPECT).iter();
        (!expected.all(known)).then_some(Unfit::Expectation)
    }

    fn names_a_host(&self) -> bool {
        let mut fields = self.headers().get_all(HOST).iter();
        let authority = self.head.uri.authority();
        let by_field = match (fields.next(), fields.next()) {
            (Some(field), None) => is_authority(field.as_bytes()),
            // HTTP/1.0 has no such field, HTTP/2 a pseudo-header in its place.
            (None, _) => {
                self.head.version == Version::HTTP_10
                    || authority.is_some() && self.head.version != Version::HTTP_11
            }
            (Some(_), Some(_)) => false,
        };
        by_field && authority.is_none_or(|authority| is_authority(authority.as_str().as_bytes()))
    }
}

/// Whether `text` is a host, with a port or without, as RFC 3986 (section 3.2.2) writes one, and nobody can take it for
/// more. It may be empty (RFC 9112, section 3.2).
fn is_authority(text: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(text) else {
        return false;
    };
    let (host_is_good, rest) = if let Some(literal) = text.strip_prefix('[') {
        let (address, rest) = literal.split_once(']').unwrap_or_default();
        (address.parse::<Ipv6Addr>().is_ok(), rest)
    } else {
        let (name, rest) = text.split_at(text.find(':').unwrap_or(text.len()));
        (is_name(name.as_bytes()), rest)
    };
    let port = rest.strip_prefix(':').unwrap_or(rest);
    let port_is_good = port.bytes().all(|byte| byte.is_ascii_digit());
    host_is_good && port_is_good && (rest.is_empty() || rest.starts_with(':'))
}

/// Whether `name` is one, escaped or not, without an empty label within; nor a comma, by which fields are joined.
fn is_name(name: &[u8]) -> bool {
    let mut escaped = name.split(|byte| *byte == b'%');
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+;=".contains(byte);
    let is_escape = |part: &[u8]| {
        part.get(..2)
            .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    escaped
        .next()
        .is_none_or(|first| first.iter().all(is_plain))
        && escaped.all(|part| is_escape(part) && part.iter().all(is_plain))
        && !name.windows(2).any(|two| two == b"..")
}

/// The host that the request is for, without its port or a dot at its end, in lower case; empty where it names none.
/// Bytes that are no text are kept apart, so that nobody escapes a limit by them.
fn host(head: &Parts) -> String {
    let named = match head.uri.host() {
        Some(host) => Cow::Borrowed(host),
        None => match head.headers.get(HOST).map(HeaderValue::as_bytes) {
            None => return String::new(),
            Some(host) => match str::from_utf8(host) {
                Ok(host) => Cow::Borrowed(host),
                Err(_) => Cow::Owned(escape(host)),
            },
        },
    };
    let port = named
        .rfind(':')
        .filter(|colon| !named[*colon..].contains(']'));
    let name = &named[..port.unwrap_or(named.len())];
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

#[cfg(test)]
mod properties;
