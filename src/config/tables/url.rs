//! Reads the URLs of an origin's servers.

use std::net::{IpAddr, Ipv6Addr};
use std::os::unix::net::SocketAddr;

use super::values;
use crate::node::Node;
use crate::schema::Form;
use crate::toml_string::toml_string;
use crate::{Host, Scheme, ServerUrl, Words};

pub(super) const FORM: Form = Form::Like(
    "(https?|h2c)://(\\[[0-9a-fA-F.]*:[0-9a-fA-F:.]*\\]|[0-9A-Za-z_-]+([.][0-9A-Za-z_-]+)*[.]?)(:[0-9]+)?|unix:(.|\\n)+",
);

/// Message about a URL with a path, a query or a user.
const NOTHING_MORE: &str = "a server is written \"http://host:port\", \"https://host:port\" or \"h2c://host:port\", with no path, query or user";

/// Reads one server. The path of a Unix socket is relative to the folder of the file.
pub(super) fn read(node: Node) -> Option<ServerUrl> {
    const WHAT: &str = "a server such as \"http://127.0.0.1:9000\"";
    if let Some(hidden) = without_user(node) {
        return node.refused(&format!("{NOTHING_MORE}; found {}", toml_string(&hidden)));
    }
    values::parsed(node, WHAT, |text| match text.strip_prefix("unix:") {
        Some(path) => unix(path, node),
        None => tcp(text),
    })
}

/// Removes the user from the URL of a server that has one, so that no message shows a password.
fn without_user(node: Node) -> Option<String> {
    let text = node.value.as_str().filter(|it| !it.starts_with("unix:"))?;
    let (_, host) = text.rsplit_once('@').filter(|_| !node.is_expanded())?;
    let scheme = text.find("://").map_or("", |at| &text[..at + 3]);
    Some(format!("{scheme}...@{host}"))
}

/// Reads the URL of a Unix socket.
fn unix(path: &str, node: Node) -> Result<ServerUrl, &'static str> {
    if path.is_empty() {
        return Err("a socket file is written \"unix:/run/app.sock\"");
    }
    let path = node.in_folder(path);
    match SocketAddr::from_pathname(&path) {
        Ok(_) => Ok(ServerUrl::Unix(path)),
        Err(_) => Err("a socket file's absolute name has at most 107 bytes, none of them 0"),
    }
}

/// Reads a URL with a host and a port.
fn tcp(text: &str) -> Result<ServerUrl, &'static str> {
    const FORM: &str = "a server is written \"http://host:port\", \"https://host:port\", \"h2c://host:port\" or \"unix:/path\"";
    const SERVICE: &str = "a service record (SRV) cannot be looked up, because the system's resolver returns addresses only; write http://host:port, and resolve = \"each\" if the name has several addresses";
    if text.starts_with("srv+") {
        return Err(SERVICE);
    }
    let (scheme, authority) = text.split_once("://").ok_or(FORM)?;
    let mut schemes = Scheme::WORDS.iter().filter(|(word, _)| *word == scheme);
    let (_, scheme) = schemes.next().ok_or(FORM)?;
    if authority.starts_with("unix:") {
        return Err("a socket file is written \"unix:/run/app.sock\", without http://");
    }
    if authority.contains(['/', '?', '#', '@']) {
        return Err(NOTHING_MORE);
    }
    let bracketed = authority.strip_prefix('[');
    let bracketed = bracketed.and_then(|rest| rest.split_once(']'));
    let (host, port) = match bracketed {
        Some((address, "")) => (v6(address), None),
        Some((address, port)) => (v6(address), Some(port.strip_prefix(':').ok_or(FORM)?)),
        None => match authority.split_once(':') {
            Some((host, port)) => (name_or_v4(host), Some(port)),
            None => (name_or_v4(authority), None),
        },
    };
    let host = host.ok_or(FORM)?;
    let port = match port {
        None => Some(scheme.default_port()),
        Some(port) if port.bytes().all(|b| b.is_ascii_digit()) => port.parse().ok(),
        Some(_) => None,
    };
    let port = port.ok_or("the port of a server is a number from 1 to 65535")?;
    Ok(ServerUrl::Tcp {
        scheme: *scheme,
        host,
        port,
        address: None,
    })
}

/// Reads an IPv6 address without brackets.
fn v6(text: &str) -> Option<Host> {
    let address = text.parse::<Ipv6Addr>().ok()?;
    Some(Host::Address(IpAddr::V6(address)))
}

/// Reads a host name, or an IPv4 address.
fn name_or_v4(text: &str) -> Option<Host> {
    if let Ok(address) = text.parse() {
        return Some(Host::Address(IpAddr::V4(address)));
    }
    // A trailing dot means that the resolver must not use its search list.
    let labels = text.strip_suffix('.').unwrap_or(text);
    let fits = |label: &str| {
        let known = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        (1..=63).contains(&label.len()) && label.bytes().all(known)
    };
    let is_name = text.len() <= 253 && labels.split('.').all(fits);
    is_name.then(|| Host::Name(text.to_lowercase()))
}
