use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::{NonZeroU16, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use super::listen::{self, meet};
use super::{Fields, Node, tls, values};
use crate::config::{ByteRate, ForwardedHeader, Listen, ListenAddress, Peers, Server};

const MAX_WORKERS: NonZeroUsize = NonZeroUsize::new(1024).unwrap();
const MAX_CONNECTIONS: NonZeroUsize = NonZeroUsize::new(25_000).unwrap();
const MOST_CONNECTIONS: NonZeroUsize = NonZeroUsize::new(u32::MAX as usize).unwrap();
/// As in nginx.
const MAX_CONCURRENT_STREAMS: NonZeroU16 = NonZeroU16::new(128).unwrap();
const MAX_HEADER_SIZE: usize = 32 * 1024;

/// Reads `[server]`.
pub(super) fn read(mut fields: Fields, admin_token: bool) -> Server {
    let (listen, admin) = addresses(&mut fields, admin_token);
    let cores = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let peers = || values::list("[\"10.0.0.0/8\"]", values::peer);
    let headers = values::choice(&ForwardedHeader::NAMED);
    let seconds = Duration::from_secs;
    let server = Server {
        name: fields
            .get("name")
            .map_or_else(|| Some(host_name()), name)
            .unwrap_or_default(),
        listen,
        admin,
        admin_hosts: fields.or(
            "admin_hosts",
            Vec::new(),
            values::list("[\"drip.internal\"]", admin_host),
        ),
        workers: fields.or(
            "workers",
            cores.min(MAX_WORKERS),
            values::at_least_one(MAX_WORKERS),
        ),
        trusted_proxies: Peers::new(fields.or("trusted_proxies", Vec::new(), peers())),
        proxy_protocol: Peers::new(fields.or("proxy_protocol", Vec::new(), peers())),
        forwarded_header: fields.or("forwarded_header", ForwardedHeader::XForwardedFor, headers),
        max_connections: fields.or(
            "max_connections",
            MAX_CONNECTIONS,
            values::at_least_one(MOST_CONNECTIONS),
        ),
        max_concurrent_streams: fields.or(
            "max_concurrent_streams",
            MAX_CONCURRENT_STREAMS,
            |node| values::whole(1..=u16::MAX)(node).and_then(NonZeroU16::new),
        ),
        hold_streams: fields.or("hold_streams", true, values::boolean),
        underscores_in_headers: fields.or("underscores_in_headers", false, values::boolean),
        keep_alive: fields.or("keep_alive", seconds(75), values::duration),
        tcp_keepalive: Some(fields.or("tcp_keepalive", seconds(60), values::tcp_keepalive))
            .filter(|after| !after.is_zero()),
        header_timeout: fields.or("header_timeout", seconds(10), values::timeout),
        body_timeout: fields.or("body_timeout", seconds(30), values::timeout),
        min_body_rate: fields
            .get("min_body_rate")
            .map_or(Some(ByteRate::MIN_BODY), |node| match node.value.as_str() {
                Some("0") => None,
                _ => values::byte_rate(node),
            }),
        max_header_size: fields.or("max_header_size", MAX_HEADER_SIZE, values::head_size),
        max_body_size: NonZeroU64::new(fields.or("max_body_size", 0, values::size)),
        shutdown_timeout: fields.or("shutdown_timeout", seconds(30), values::duration),
        state: fields.get("state").and_then(state),
        tls: fields.get("tls").and_then(tls::read),
    };
    fields.finish();
    server
}

/// Most characters of the gateway's name.
const LONGEST_NAME: usize = 64;

/// Most characters of the name of a host (RFC 1035, section 2.3.4).
const LONGEST_HOST: usize = 253;

/// Whether a text can name a gateway: on one line, and not to be mistaken for another.
fn is_name(text: &str) -> bool {
    let is_visible = |c: char| !c.is_control() && !c.is_whitespace() || c == ' ';
    let count = text.chars().count();
    (1..=LONGEST_NAME).contains(&count) && text.trim() == text && text.chars().all(is_visible)
}

fn name(node: Node) -> Option<String> {
    let text = node.value.as_str().filter(|text| is_name(text));
    text.map(ToOwned::to_owned).or_else(|| {
        node.expected(&format!(
            "1 to {LONGEST_NAME} printable characters such as \"edge-1\""
        ))
    })
}

fn state(node: Node) -> Option<PathBuf> {
    match node.value.as_str() {
        None | Some("") => node.expected("the name of a file such as \"drip.state\""),
        Some(name) => Some(node.in_folder(name)),
    }
}

/// The name of this host.
fn host_name() -> String {
    let uname = rustix::system::uname();
    let name = uname.nodename().to_string_lossy();
    let name: String = name.chars().take(LONGEST_NAME).collect();
    Some(name)
        .filter(|name| is_name(name))
        .unwrap_or_else(|| "drip".to_owned())
}

/// Reads the client addresses and the admin address, and reports two that conflict.
fn addresses(fields: &mut Fields, admin_token: bool) -> (Vec<Listen>, Option<SocketAddr>) {
    let local = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    let has_tls = fields.value("tls").is_some();
    let listen_node = fields.get("listen");
    let listen = match listen_node {
        Some(node) => listen::read(node, has_tls),
        None => vec![listen::of_text(ListenAddress::Tcp(local(8080)), has_tls)],
    };
    let admin_node = fields.get("admin");
    let admin = match admin_node {
        Some(node) => admin(node, admin_token),
        None => Some(local(9090)),
    };
    let meeting = admin.map(ListenAddress::Tcp).and_then(|admin| {
        let met = listen.iter().find(|listen| meet(&listen.address, &admin));
        Some((met?, admin))
    });
    match (meeting, admin_node, listen_node) {
        (Some((met, admin)), Some(node), _) => node.wrong(&format!(
            "{admin} and {met}, where clients connect, cannot both be listened on; give admin another port"
        )),
        (Some((met, admin)), None, Some(node)) => node.wrong(&format!(
            "{met} and the admin port, {admin}, cannot both be listened on; set admin to another port or to \"off\""
        )),
        _ => {}
    }
    (listen, admin)
}

/// The name of a host, without a port that may follow it, as in the field `Host`.
fn admin_host(node: Node) -> Option<String> {
    let text = node.value.as_str().unwrap_or_default();
    let name = match text.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        _ => text,
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if name.is_empty() || name.len() > LONGEST_HOST || !name.chars().all(is_part) {
        return node.expected("the name of a host such as \"drip.internal\"");
    }
    Some(name.to_ascii_lowercase())
}

fn admin(node: Node, token: bool) -> Option<SocketAddr> {
    let text = node.value.as_str().unwrap_or_default();
    if text == "off" {
        return None;
    }
    let Ok(address) = text.parse::<SocketAddr>() else {
        return node.expected("an address with a port such as \"127.0.0.1:9090\", or \"off\"");
    };
    if !token && !address.ip().to_canonical().is_loopback() {
        node.wrong(&format!(
            "{address} is reachable from other hosts, and no token protects it; use 127.0.0.1:{}, or set DRIP_ADMIN_TOKEN",
            address.port()
        ));
    }
    Some(address)
}
