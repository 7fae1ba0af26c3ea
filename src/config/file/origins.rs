use std::net::Ipv6Addr;
use std::num::NonZeroUsize;
use std::time::Duration;

use super::{Fields, Names, Node, named, values};
use crate::config::{HostRule, Origin, ServerUrl, later};

/// As many as the semaphore that counts them can.
const MOST_IN_FLIGHT: usize = 1_000_000_000;

/// Reads `[origins]`.
pub(super) fn read(node: Node) -> (Names, Vec<Option<Origin>>) {
    named(node, |fields, name| Some(origin(fields, name)))
}

fn origin(mut fields: Fields, name: String) -> Origin {
    const EXAMPLE: &str = "[\"http://127.0.0.1:9000\"]";
    let servers = fields.required("servers", EXAMPLE, |node| {
        values::filled(EXAMPLE, node)?;
        values::list(EXAMPLE, server)(node)
    });
    let timeout = |seconds| Duration::from_secs(seconds);
    let origin = Origin {
        name,
        servers: servers.unwrap_or_default(),
        connect_timeout: fields.or("connect_timeout", timeout(1), values::timeout),
        response_timeout: fields.or("response_timeout", timeout(60), values::timeout),
        max_in_flight: NonZeroUsize::new(fields.or(
            "max_in_flight",
            0,
            values::whole(0..=MOST_IN_FLIGHT),
        )),
        queue_timeout: fields.or("queue_timeout", timeout(5), values::duration),
        max_fails: fields.or("max_fails", 3, values::whole(1..=u32::MAX)),
        fail_timeout: fields.or("fail_timeout", timeout(10), values::timeout),
        keep_alive: fields.or("keep_alive", 256, values::whole(0..=u32::MAX as usize)),
        host: fields.or("host", HostRule::Preserve, host),
    };
    fields.finish(later::ORIGIN);
    origin
}

fn host(node: Node) -> Option<HostRule> {
    const WHAT: &str = "\"preserve\", \"origin\", or a host name such as \"app.internal\"";
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    match node.value.as_str() {
        Some("preserve") => Some(HostRule::Preserve),
        Some("origin") => Some(HostRule::Origin),
        Some(name) if !name.is_empty() && name.chars().all(fits) => {
            Some(HostRule::Literal(name.to_owned()))
        }
        _ => node.expected(WHAT),
    }
}

fn server(node: Node) -> Option<ServerUrl> {
    values::parsed(
        node,
        "a server such as \"http://127.0.0.1:9000\"",
        server_url,
    )
}

fn server_url(text: &str) -> Result<ServerUrl, &'static str> {
    const FORM: &str = "a server is written \"http://host:port\"";
    if text.starts_with("https://") || text.starts_with("unix:") {
        return Err(
            "https and unix sockets are not supported by this version; write \"http://host:port\"",
        );
    }
    let authority = text.strip_prefix("http://").ok_or(FORM)?;
    if authority.contains(['/', '?', '#', '@']) {
        return Err("a server is written \"http://host:port\", with no path, query or user");
    }
    let bracketed = authority
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'));
    let (host, port) = match bracketed {
        Some((address, port)) => {
            let address = address.parse::<Ipv6Addr>().map_err(|_| FORM)?;
            (
                address.to_string(),
                port.strip_prefix(':').or(port.is_empty().then_some("80")),
            )
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host.to_lowercase(), Some(port)),
            None => (authority.to_lowercase(), Some("80")),
        },
    };
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    if host.is_empty() || bracketed.is_none() && !host.chars().all(fits) {
        return Err(FORM);
    }
    let port = port.filter(|port| port.bytes().all(|b| b.is_ascii_digit()));
    match port.and_then(|port| port.parse().ok()) {
        None | Some(0) => Err("the port of a server is a number from 1 to 65535"),
        Some(port) => Ok(ServerUrl { host, port }),
    }
}
