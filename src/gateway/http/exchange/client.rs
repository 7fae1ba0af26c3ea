//! The address of a request's client, as named by trusted proxies.
//!
//! Proxies name their clients in `X-Forwarded-For` or `Forwarded`. Only entries of trusted proxies
//! count.

use std::net::IpAddr;

use config::{ForwardedHeader, Server};
use memchr::memrchr;

use crate::http::downstream::Peer;
use crate::http::message::{FieldName, Fields, strip_start};

/// Client that sent a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Client {
    /// Address of the client, `$remote_addr`: the peer's, or the one that trusted proxies name.
    ///
    /// `None` on a unix socket.
    pub(super) address: Option<IpAddr>,
    /// Whether the peer is a trusted proxy, whose fields about its client count.
    pub(super) via_proxy: bool,
}

impl Client {
    /// Finds the client of a request.
    ///
    /// The client is the peer, unless the peer is a trusted proxy. Then it is the rightmost address
    /// in the forwarding field that is not a trusted proxy. If that field is invalid or names no
    /// address, the client is the peer.
    pub(super) fn of(fields: Fields<'_>, peer: &Peer, server: &Server) -> Self {
        let peer = peer.ip();
        let is_trusted = |address: &IpAddr| server.trusted_proxies.contains(Some(*address));
        let via_proxy = server.trusted_proxies.contains(peer);
        let named = via_proxy.then(|| find_address(fields, server.forwarded_header, is_trusted));
        let address = named.flatten().or(peer);
        Self { address, via_proxy }
    }
}

/// Returns the rightmost address in the field that is not trusted.
///
/// If all are trusted, returns the leftmost address. Returns `None` if there is no address, or if
/// an element to the right of the result is not an address. Elements further left are not read: the
/// client itself may have written them.
fn find_address(
    fields: Fields<'_>,
    field: ForwardedHeader,
    is_trusted: impl Fn(&IpAddr) -> bool,
) -> Option<IpAddr> {
    let mut leftmost = None;
    for element in elements(fields, field) {
        let address = parse(element, field)?;
        if !is_trusted(&address) {
            return Some(address);
        }
        leftmost = Some(address);
    }
    leftmost
}

/// Returns the element to the left of the client's address: the client itself may have written it.
///
/// Returns `None` if the field does not name the client, or if the client is the leftmost.
pub(super) fn named_by_client(
    fields: Fields<'_>,
    client: Option<IpAddr>,
    field: ForwardedHeader,
) -> Option<&[u8]> {
    let mut elements = elements(fields, field);
    let client = client?;
    elements.find(|element| parse(element, field) == Some(client))?;
    elements.next()
}

/// Returns the elements of the field that are not empty, the last one first.
fn elements(fields: Fields<'_>, field: ForwardedHeader) -> impl Iterator<Item = &[u8]> {
    /// Splits a line into its elements, the last one first.
    type Split = fn(&[u8]) -> Vec<&[u8]>;
    let (name, split): (_, Split) = match field {
        ForwardedHeader::XForwardedFor => (FieldName::XForwardedFor, |line| {
            line.rsplit(|byte| *byte == b',').collect()
        }),
        ForwardedHeader::Forwarded => (FieldName::Forwarded, |line| split_unquoted(line, b',')),
    };
    let all = fields.all(name).rev().flat_map(split);
    all.map(<[u8]>::trim_ascii).filter(|it| !it.is_empty())
}

/// Parses the address in an element of the field.
fn parse(element: &[u8], field: ForwardedHeader) -> Option<IpAddr> {
    match field {
        ForwardedHeader::XForwardedFor => parse_node(element),
        ForwardedHeader::Forwarded => parse_forwarded(element),
    }
}

/// Splits `text` at separators outside of quotes, and returns the last part first.
///
/// See RFC 9110, section 5.6.4. The text is read from its end, which the proxies wrote. If it were
/// read from its start, a quote that a client opens there would hide the elements that proxies add,
/// up to their first own quote. A quote that is never opened is an ordinary character.
pub(super) fn split_unquoted(text: &[u8], separator: u8) -> Vec<&[u8]> {
    let (mut parts, mut end, mut index) = (Vec::new(), text.len(), text.len());
    while let Some((byte, before)) = text[..index].split_last() {
        index -= 1;
        if *byte == separator {
            parts.push(&text[index + 1..end]);
            end = index;
        } else if *byte == b'"' {
            index = opening_quote(before).unwrap_or(index);
        }
    }
    parts.push(&text[..end]);
    parts
}

/// Returns the index of the opening quote for a quote that is closed after `text`.
///
/// The opening quote is the last quote that is not escaped.
fn opening_quote(text: &[u8]) -> Option<usize> {
    let mut end = text.len();
    loop {
        let quote = memrchr(b'"', &text[..end])?;
        let before = text[..quote].iter().rev();
        let backslashes = before.take_while(|byte| **byte == b'\\');
        // In pairs, backslashes escape each other and not the quote.
        if backslashes.count() % 2 == 0 {
            return Some(quote);
        }
        end = quote;
    }
}

/// Parses the `for` parameter of one element of `Forwarded` (RFC 7239, section 4).
fn parse_forwarded(element: &[u8]) -> Option<IpAddr> {
    // The parts come last first, and are reversed here: the first `for` counts.
    let mut pairs = split_unquoted(element, b';').into_iter().rev();
    let value = pairs.find_map(|pair| strip_start(pair.trim_ascii(), b"for="))?;
    let unquoted = value.strip_prefix(b"\"");
    let unquoted = unquoted.and_then(|value| value.strip_suffix(b"\""));
    parse_node(unquoted.unwrap_or(value))
}

/// Parses an address, with or without a port.
///
/// Examples: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:80`.
fn parse_node(text: &[u8]) -> Option<IpAddr> {
    let text = str::from_utf8(text).ok()?;
    let (address, rest) = match text.strip_prefix('[') {
        Some(bracketed) => bracketed.split_once(']')?,
        // With one colon it is IPv4 with a port; IPv6 has more.
        None if text.matches(':').count() == 1 => text.split_at(text.find(':')?),
        None => (text, ""),
    };
    // The port may be an obfuscated name (RFC 7239, section 6). It is ignored in any case.
    let has_port = rest.strip_prefix(':').is_some_and(|port| !port.is_empty());
    let address: IpAddr = address.parse().ok()?;
    if !rest.is_empty() && !has_port {
        return None;
    }
    Some(address.to_canonical())
}

#[cfg(test)]
mod properties;
