//! Parses and compares the addresses on which servers listen.
//!
//! An address covers another one if its socket receives requests to both: `0.0.0.0:80` covers
//! `10.0.0.1:80`.

use std::net::SocketAddr;

use super::probe;
use crate::import::tree::Directive;

/// An address of a server.
#[derive(Clone, Debug)]
pub(super) struct Listen {
    /// The address in drip's syntax, such as `0.0.0.0:80` or `unix:PATH`.
    pub(super) address: String,
    pub(super) has_tls: bool,
    /// Whether the server is the default server of the address.
    pub(super) is_default: bool,
}

impl Listen {
    /// Returns nginx's address for a server without `listen`.
    pub(super) fn default_address() -> Self {
        Self {
            address: "0.0.0.0:80".to_owned(),
            has_tls: false,
            is_default: false,
        }
    }

    /// Reads a `listen` directive; `None` if drip cannot listen there, which is noted.
    pub(super) fn read(directive: &Directive) -> Option<Self> {
        let at = directive.at;
        let Some((text, flags)) = directive.args.split_first() else {
            at.note("listen has no address; it is left out");
            return None;
        };
        let has_flag = |flag: &str| flags.iter().any(|known| known == flag);
        if has_flag("quic") {
            at.note("listen: drip has no HTTP/3; this address is left out");
            return None;
        }
        if has_flag("proxy_protocol") {
            at.note("listen: name the proxies in proxy_protocol of [server]; until then a connection that sends the PROXY protocol gets an error");
        }
        let address = full_address(text);
        if !probe::listen(&address) || address.ends_with(":0") {
            let why = "not an address that drip can listen on; it is left out";
            at.note(format!("listen {text}: {why}"));
            return None;
        }
        Some(Self {
            address,
            has_tls: has_flag("ssl"),
            is_default: has_flag("default_server") || has_flag("default"),
        })
    }
}

/// Converts an address of nginx, such as `80`, `*:80` or `localhost`, to drip's syntax.
fn full_address(text: &str) -> String {
    if text.starts_with("unix:") {
        return text.to_owned();
    }
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return format!("0.0.0.0:{text}");
    }
    if let Some(rest) = text.strip_prefix("localhost") {
        return with_port(&format!("127.0.0.1{rest}"));
    }
    let wildcard = text.strip_prefix('*').map(|rest| format!("0.0.0.0{rest}"));
    with_port(wildcard.as_deref().unwrap_or(text))
}

/// Returns the address, with nginx's default port 80 if it has no port.
pub(super) fn with_port(address: &str) -> String {
    // The colons inside of `[::1]` precede no port.
    let after_brackets = address.rsplit_once(']').map_or(address, |(_, after)| after);
    if after_brackets.contains(':') {
        address.to_owned()
    } else {
        format!("{address}:80")
    }
}

/// Returns the addresses to listen on, without those that an earlier or wider one covers.
pub(super) fn without_covered(addresses: &[&str]) -> Vec<String> {
    let is_kept = |(index, address): &(usize, &&str)| {
        let mut earlier = addresses[..*index].iter();
        let is_repeated = earlier.any(|other| other == *address || covers(other, address));
        let mut all = addresses.iter();
        !is_repeated && !all.any(|other| covers(other, address) && !covers(address, other))
    };
    let kept = addresses.iter().enumerate().filter(is_kept);
    kept.map(|(_, address)| (*address).to_owned()).collect()
}

/// Returns whether only programs of this machine can reach an address.
pub(super) fn is_local(address: &str) -> bool {
    let parsed = address.parse::<SocketAddr>();
    let is_loopback = |address: SocketAddr| address.ip().to_canonical().is_loopback();
    address.starts_with("unix:") || parsed.is_ok_and(is_loopback)
}

/// Returns whether the kernel would refuse to bind both addresses.
pub(super) fn conflicts(one: &str, other: &str) -> bool {
    covers(one, other) || covers(other, one)
}

/// Returns whether requests to `other` arrive at a socket of `one`, if `other` has no socket.
pub(super) fn covers(one: &str, other: &str) -> bool {
    let (Ok(one), Ok(other)) = (one.parse::<SocketAddr>(), other.parse::<SocketAddr>()) else {
        return false;
    };
    // A wildcard of IPv6 also receives requests to IPv4 addresses.
    let is_wildcard = one.ip().is_unspecified() && (one.is_ipv6() || other.is_ipv4());
    one.port() == other.port() && (one.ip() == other.ip() || is_wildcard)
}
