use std::borrow::Cow;

use http::HeaderMap;
use http::header::{EXPECT, HOST, HeaderValue};
use http::request::Parts;
use hyper::{Method, Version};
use memchr::memchr;

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

    /// `http` or `https`, by the connection.
    pub(super) fn scheme(&self) -> &'static str {
        if self.peer.secure { "https" } else { "http" }
    }

    /// Why the request is not taken, if it is not.
    pub(super) fn unfit(&self) -> Option<Unfit> {
        let expected = self.headers().get(EXPECT);
        if self.head.method == Method::CONNECT {
            return Some(Unfit::Connect);
        }
        if !self.names_a_host() {
            return Some(Unfit::Host);
        }
        let known =
            |expected: &HeaderValue| expected.as_bytes().eq_ignore_ascii_case(b"100-continue");
        (!expected.is_none_or(known)).then_some(Unfit::Expectation)
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

/// Whether a host, with a port or without, is one that nobody takes for more: no user before it, no path after it, no
/// second port, no empty label within. Bytes beyond ASCII are left to the origin.
fn is_authority(text: &[u8]) -> bool {
    let strange = |byte: &u8| {
        byte.is_ascii_whitespace() || byte.is_ascii_control() || b"/?#@\\,\"".contains(byte)
    };
    let (name, port) = match text.strip_prefix(b"[") {
        Some(rest) => match memchr(b']', rest) {
            Some(end) => (&rest[..end], &rest[end + 1..]),
            None => return false,
        },
        None => text.split_at(memchr(b':', text).unwrap_or(text.len())),
    };
    let bracketed = text.starts_with(b"[");
    let port = port.strip_prefix(b":").or(port.is_empty().then_some(port));
    !name.iter().any(strange)
        && !name.iter().any(|byte| b"[]".contains(byte))
        && !name.windows(2).any(|two| two == b"..")
        && (!bracketed || !name.is_empty())
        && port.is_some_and(|port| port.iter().all(u8::is_ascii_digit))
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
