//! Parses and compares the addresses on which servers listen.

use std::net::SocketAddr;

use super::probe;
use crate::import::tree::Directive;

/// An address of a server.
#[derive(Clone, Debug)]
pub(super) struct Listen {
    pub(super) address: String,
    pub(super) tls: bool,
    pub(super) default: bool,
}

impl Listen {
    pub(super) fn anywhere() -> Self {
        Self {
            address: "0.0.0.0:80".to_owned(),
            tls: false,
            default: false,
        }
    }

    pub(super) fn read(directive: &Directive) -> Option<Self> {
        let at = directive.at;
        let Some((text, flags)) = directive.args.split_first() else {
            at.note("listen has no address; it is left out");
            return None;
        };
        let is = |flag: &str| flags.iter().any(|known| known == flag);
        if is("quic") {
            let what = "listen: drip has no HTTP/3; this address is left out";
            at.note(what);
            return None;
        }
        if is("proxy_protocol") {
            at.note("listen: name the proxies in proxy_protocol of [server]; until then a connection that sends the PROXY protocol gets an error",
            );
        }
        let address = address(text);
        if !probe::listen(&address) || address.ends_with(":0") {
            let why = "not an address that drip can listen on; it is left out";
            at.note(format!("listen {text}: {why}"));
            return None;
        }
        Some(Self {
            address,
            tls: is("ssl"),
            default: is("default_server") || is("default"),
        })
    }
}

fn address(text: &str) -> String {
    if text.starts_with("unix:") {
        return text.to_owned();
    }
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return format!("0.0.0.0:{text}");
    }
    if let Some(rest) = text.strip_prefix("localhost") {
        return with_port(&format!("127.0.0.1{rest}"));
    }
    let any = text.strip_prefix('*').map(|rest| format!("0.0.0.0{rest}"));
    with_port(any.as_deref().unwrap_or(text))
}

/// Returns the address, with nginx's default port 80 if it has no port.
pub(super) fn with_port(address: &str) -> String {
    let behind = address.rsplit_once(']');
    let behind = behind.map_or(address, |(_, behind)| behind);
    if behind.contains(':') {
        address.to_owned()
    } else {
        format!("{address}:80")
    }
}

/// Returns the addresses to listen on, without those that a wildcard address already covers.
pub(super) fn together(listens: &[&str]) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for new in listens {
        let pair = |one: &str, other: &str| one == other || meet(one, other);
        let wide = |address: &str| ["[::]:", "0.0.0.0:"].map(|it| address.starts_with(it));
        if let Some(index) = kept.iter().position(|known| pair(known, new)) {
            if wide(new) > wide(&kept[index]) {
                kept.retain(|known| !pair(known, new));
                kept.push((*new).to_owned());
            }
        } else {
            kept.push((*new).to_owned());
        }
    }
    kept
}

/// Returns whether only programs of this machine can reach an address.
pub(super) fn is_local(address: &str) -> bool {
    let parsed = address.parse::<SocketAddr>();
    let is_loopback = |it: SocketAddr| it.ip().to_canonical().is_loopback();
    address.starts_with("unix:") || parsed.is_ok_and(is_loopback)
}

/// Returns whether the kernel would refuse to bind both addresses.
pub(super) fn meet(one: &str, other: &str) -> bool {
    covers(one, other) || covers(other, one)
}

/// Returns whether requests to `other` arrive at a socket of `one`, if `other` has no socket.
pub(super) fn covers(one: &str, other: &str) -> bool {
    let (Ok(one), Ok(other)) = (one.parse::<SocketAddr>(), other.parse::<SocketAddr>()) else {
        return false;
    };
    let (a, b) = (one.ip(), other.ip());
    let is_wide = a.is_unspecified() && (a.is_ipv6() || b.is_ipv4());
    one.port() == other.port() && (a == b || is_wide)
}
