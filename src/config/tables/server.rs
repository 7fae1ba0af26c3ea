//! `[server]`.

use std::net::SocketAddr;
use std::num::{NonZeroU16, NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use limit::show_duration;

use super::networks::PEERS;
use super::prelude::*;
use super::{header_fields, listen, tls};
use crate::{ByteRate, Listen, ListenAddress, ListenService, Peers, Tls};

const MAX_WORKERS: usize = 1024;

table! {
    /// `[server]`.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Server {
        name: String = NAME.or_else(host_name), Now,
            "Name of this gateway in the API, in metrics and in the log: 1 to 64 printable characters. Default: the host's name.";
        /// Addresses for clients, without duplicates; never empty.
        listen: Vec<Listen>;
        + listen: Field::of(listen::FORM).or("[\"127.0.0.1:8080\"]"), Restart,
            "Addresses for clients: \"127.0.0.1:8080\", \"[::]:8080\" (IPv4 too), a socket file \"unix:/run/drip.sock\", or a table with one of them as address.",
            |it, settings| listen::shown_list(it, settings);
        /// Address of the admin port; `None`: no admin port.
        admin: Option<SocketAddr>;
        + admin: Field::of(ADMIN_FORM).or("\"127.0.0.1:9090\""), Restart,
            "Address of the admin port, or \"off\". An address that is not loopback needs DRIP_ADMIN_TOKEN.",
            |it, _| shown(&it.admin.map_or("off".to_owned(), |admin| admin.to_string()));
        /// In lower case.
        admin_hosts: Vec<String> = ADMIN_HOSTS.or("[]"), Now,
            "Host names that requests to the admin port may have, besides those of the host.";
        metrics: MetricsAccess = word().or("\"open\""), Now,
            "Whether /metrics of the admin port needs no token (\"open\"), or one for reading or changing (\"token\").";
        workers: NonZeroUsize = whole::<_, 1, { MAX_WORKERS as u64 }>().or_else(cores), Restart,
            "Worker threads. Default: one per core.";
        trusted_proxies: Peers = PEERS.or("[]"), NextRequest,
            "Peers whose forwarded_header names the client: networks, or \"unix:\" for all on socket files, or { file = \"proxies.txt\" }.";
        proxy_protocol: Peers = PEERS.or("[]"), NewConnections,
            "Peers that must begin each connection with a header of the PROXY protocol, version 1 or 2: networks, \"unix:\", or { file = \"proxies.txt\" }.";
        forwarded_header: ForwardedHeader = word().or("\"x-forwarded-for\""), NextRequest,
            "The field in which a trusted proxy names the client.";
        max_connections: NonZeroUsize = whole::<_, 1, U32>().or("25000"), Restart,
            "Client connections at once; more wait in the kernel.";
        /// The default is that of nginx.
        max_concurrent_streams: NonZeroU16 = whole::<_, 1, { u16::MAX as u64 }>().or("128"), NewConnections,
            "Requests at once on one connection over HTTP/2.";
        hold_streams: bool = BOOLEAN.or("true"), NextRequest,
            "Let requests over HTTP/2 wait where burst is used up, instead of rejecting them.";
        underscores_in_headers: bool = BOOLEAN.or("false"), NextRequest,
            "Pass fields with _ for - on and read them as that field, where limits or conditions read it, instead of dropping them.";
        keep_alive: Duration = DURATION.or("\"75s\""), NewConnections,
            "How long an idle client connection stays open; \"0\": a connection serves one request.";
        keep_alive_time: Duration = DURATION.or("\"0\""), NewConnections,
            "How long a client connection is used, up to a tenth less; \"0\": no limit.";
        /// `None`: no limit.
        keep_alive_requests: Option<NonZeroU32> = whole_or_zero::<_, U32>().or("0"), NewConnections,
            "Requests that a client connection carries; 0: no limit.";
        /// `None`: no probes. Applies to client and origin connections.
        tcp_keepalive: Option<Duration> = TCP_KEEPALIVE.or("\"60s\""), NewConnections,
            "Silence after which the kernel probes the peer: \"1s\" to \"9h\", or \"0\" for off.";
        header_timeout: Duration = TIMEOUT.or("\"10s\""), NewConnections,
            "Time for a whole request head, and for the TLS handshake.";
        body_timeout: Duration = TIMEOUT.or("\"30s\""), NewConnections,
            "Longest pause in a request body, or in which the client takes nothing of a response.";
        /// The default is 273 bytes per second. IIS and Kestrel use 240, Apache 500.
        min_body_rate: Option<ByteRate> = MIN_BODY_RATE.or("\"8KB/30s\""), NewConnections,
            "Least bytes of a body over a span in which the client is waited for: up to \"1MB\", over \"100ms\" to \"1h\"; \"0\": none.";
        max_header_size: usize = HEAD_SIZE.or("\"32KB\""), NewConnections,
            "Largest request head: \"1KB\" to \"1MB\".";
        max_body_size: Option<NonZeroU64> = SIZE_OR_ZERO.or("\"0\""), NextRequest,
            "Largest request body; \"0\": no limit.";
        shared_answers: NonZeroU64 = SIZE_ABOVE_ZERO.or("\"64MB\""), Now,
            "Memory for the answers that routes with collapse share; those not used for longest go first.";
        buffers: NonZeroU64 = SIZE_ABOVE_ZERO.or("\"64MB\""), Now,
            "Memory for bodies that request_buffer and response_buffer of origins read ahead; beyond it, requests go on without.";
        shutdown_timeout: Duration = DURATION.or("\"30s\""), Now,
            "How long a stop lets waiting requests drain.";
        stop_delay: Duration = DURATION.or("\"0\""), Now,
            "How long a stop first goes on to accept and serve, with /readyz at 503, until balancers send nothing more.";
        request_id: Option<Box<str>> = REQUEST_ID.optional(), NextRequest,
            "The field with an id of each request, such as \"x-request-id\": taken from a trusted proxy, else made.";
        /// Absolute path; `None`: no state file.
        state: Option<PathBuf> = FILE_NAME.optional(), Restart,
            "File in which levels and schedules outlive the process: the next one starts from it.";
        /// Certificates for TLS connections of clients; `None`: no address has TLS.
        tls: Option<Tls>;
        + tls: Field::of(Form::Table(Tls::TABLE)), Restart,
            "Certificates for TLS connections of clients.",
            |it, settings| shown_table(it.tls.as_ref(), settings);
    }
}

const ADMIN_FORM: Form = Form::Like("off|([0-9.]+|\\[[0-9a-fA-F:.%]+\\]):[0-9]+");

const ADMIN_HOSTS: Kind<Vec<String>> = kind(
    Form::UniqueList(&Form::Like("[A-Za-z0-9._-]{1,253}\\.?(:[0-9]{1,5})?"), 0),
    |node| values::list(node, "[\"drip.internal\"]", read_admin_host),
    |it| texts(it),
);

const NAME: Kind<String> = kind(
    Form::Like(
        "[^\\s\\u0000-\\u001f\\u007f]([^\\u0000-\\u001f\\u007f]{0,62}[^\\s\\u0000-\\u001f\\u007f])?",
    ),
    |node| {
        let what = format!("1 to {MAX_NAME} printable characters such as \"edge-1\"");
        values::fitting(node, &what, is_name).map(str::to_owned)
    },
    shown,
);

const TCP_KEEPALIVE: Kind<Option<Duration>> = kind(
    DURATION_FORM,
    |node| {
        let silence = values::duration(node)?;
        if silence.is_zero() {
            return Some(None);
        }
        // Linux counts whole seconds, and accepts at most 32767 of them (tcp(7), `TCP_KEEPIDLE`).
        let accepted = Duration::from_secs(1)..=Duration::from_secs(9 * 3600);
        let silence = Some(silence).filter(|it| accepted.contains(it)).map(Some);
        silence.or_else(|| node.expected("a duration from 1s to 9h, or \"0\" for none"))
    },
    |it| shown(&show_duration(it.unwrap_or_default())),
);

const MIN_BODY_RATE: Kind<Option<ByteRate>> = kind(
    BYTE_RATE_FORM,
    |node| {
        const WHAT: &str = "bytes over a span such as \"8KB/30s\", or \"0\" for none";
        if node.value.as_str() == Some("0") {
            return Some(None);
        }
        let (bytes, span) = values::without_blanks(node, WHAT, ByteRate::parse)?;
        let rate = ByteRate::of(bytes, span).map(Some);
        rate.or_else(|| node.expected("from a byte a second to 1MB, over a span from 100ms to 1h"))
    },
    |it| shown(&it.map_or("0".to_owned(), |rate| rate.to_string())),
);

const REQUEST_ID: Kind<Box<str>> = kind(
    HEADER_NAME_FORM,
    |node| {
        let name = values::text(node)?;
        if let Some(wrong) = header_fields::why_unfit_for_ids(name) {
            return node.refused(&format!("{wrong}; write one such as \"x-request-id\""));
        }
        Some(name.into())
    },
    shown,
);

/// Reads `[server]`.
///
/// `has_admin_token`: a token of the environment protects the admin port.
pub(crate) fn read(mut fields: Fields, has_admin_token: bool) -> Server {
    let mut server = Server::read(&mut fields);
    let has_tls = fields.value("tls").is_some();
    server.tls = fields.table("tls", Tls::TABLE).and_then(tls::read);
    let clients = server.tls.as_ref().and_then(|tls| tls.clients.as_ref());
    let read_listen = |node: Node| listen::read(node, has_tls, clients);
    server.listen = read_or_default(&mut fields, "listen", read_listen);
    let read_admin = |node: Node| read_admin(node, has_admin_token);
    server.admin = read_or_default(&mut fields, "admin", read_admin);
    fields.refuse_if(
        server.metrics == MetricsAccess::Token && !has_admin_token,
        "metrics",
        "no token is set; set DRIP_ADMIN_READ_TOKEN or DRIP_ADMIN_TOKEN, or write \"open\"",
    );
    check_admin_conflict(&fields, &server);
    fields.finish();
    server
}

/// Reports an admin address that conflicts with an address for clients.
fn check_admin_conflict(fields: &Fields, server: &Server) {
    let Some(admin) = server.admin else {
        return;
    };
    let address = ListenAddress::Tcp(admin);
    let mut listens = server.listen.iter();
    let other = listens.find(|listen| listen::conflict(&listen.address, &address));
    let node = fields.value("admin").or_else(|| fields.value("listen"));
    if let (Some(other), Some(node)) = (other, node) {
        node.wrong(&format!(
            "the admin port {admin} conflicts with {other}, where clients connect; set admin to another port or to \"off\""
        ));
    }
}

/// Returns the number of processor cores that this process may use.
fn cores() -> NonZeroUsize {
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    NonZeroUsize::new(cores.min(MAX_WORKERS)).unwrap_or(NonZeroUsize::MIN)
}

/// Maximum length of the gateway's name, in characters.
const MAX_NAME: usize = 64;

/// Maximum length of a host name, in characters (RFC 1035, section 2.3.4).
const MAX_HOST: usize = 253;

/// Returns whether a text can name a gateway: it is on one line and has no invisible characters.
fn is_name(text: &str) -> bool {
    let is_visible = |c: char| !c.is_control() && !c.is_whitespace() || c == ' ';
    let count = text.chars().count();
    (1..=MAX_NAME).contains(&count) && text.trim() == text && text.chars().all(is_visible)
}

/// Returns the name of this host, or `drip` if that cannot name a gateway.
fn host_name() -> String {
    let uname = rustix::system::uname();
    let name = uname.nodename().to_string_lossy();
    let name: String = name.chars().take(MAX_NAME).collect();
    if is_name(&name) {
        name
    } else {
        "drip".to_owned()
    }
}

/// Reads the name of a host, without a port that may follow it, as in the field `Host`.
fn read_admin_host(node: Node) -> Option<String> {
    let text = node.value.as_str().unwrap_or_default();
    let name = match text.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        _ => text,
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if name.is_empty() || name.len() > MAX_HOST || !name.chars().all(is_part) {
        return node.expected("the name of a host such as \"drip.internal\"");
    }
    Some(name.to_ascii_lowercase())
}

/// Reads the address of the admin port. `has_admin_token`: as in [`read`].
fn read_admin(node: Node, has_admin_token: bool) -> Option<SocketAddr> {
    let text = node.value.as_str().unwrap_or_default();
    if text == "off" {
        return None;
    }
    let Ok(address) = text.parse::<SocketAddr>() else {
        return node.expected("an address with a port such as \"127.0.0.1:9090\", or \"off\"");
    };
    if !has_admin_token && !address.ip().to_canonical().is_loopback() {
        node.wrong(&format!(
            "{address} is reachable from other hosts, and no token protects it; use 127.0.0.1:{}, or set DRIP_ADMIN_TOKEN",
            address.port()
        ));
    }
    Some(address)
}

impl Server {
    /// Returns whether any address for clients uses TLS.
    pub fn has_tls_address(&self) -> bool {
        let mut listen = self.listen.iter();
        listen.any(|listen| listen.service == ListenService::Tls)
    }

    /// Returns how many HTTP/2 requests of a key may wait above `burst`.
    ///
    /// A client with one connection has no more requests in flight than this.
    pub fn above_burst(&self) -> u32 {
        if !self.hold_streams {
            return 0;
        }
        self.max_concurrent_streams.get().into()
    }
}

words! {
    /// Clients that may read `/metrics`.
    pub enum MetricsAccess {
        /// All clients that reach the admin port.
        Open = "open",
        /// Clients with a token of the admin port.
        Token = "token",
    }
}

words! {
    /// Header field in which a trusted peer names its client.
    pub enum ForwardedHeader {
        /// `X-Forwarded-For`.
        XForwardedFor = "x-forwarded-for",
        /// `Forwarded`, RFC 7239.
        Forwarded = "forwarded",
    }
}
