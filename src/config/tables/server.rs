//! `[server]`: the client side of drip, with addresses, timeouts and size limits, and the admin
//! port.
//!
//! In `table!`, an entry is a field of the file: its type, its reader with the default, when a
//! change takes effect, and its meaning (see `table_settings`, and `kinds` for readers such as
//! `DURATION`).

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

/// Maximum number of worker threads.
const MAX_WORKERS: usize = 1024;

table! {
    /// `[server]`: the client side of drip, and the admin port.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Server {
        name: String = NAME.with_default_from(host_name), Now,
            "Name of this gateway in the API, in metrics and in the log: 1 to 64 printable characters. Default: the host's name.";
        /// Addresses for clients, without duplicates; never empty.
        listen: Vec<Listen>;
        + listen: Field::of_form(listen::FORM).with_default("[\"127.0.0.1:8080\"]"), Restart,
            "Addresses for clients: \"127.0.0.1:8080\", \"[::]:8080\" (IPv4 too), a socket file \"unix:/run/drip.sock\", or a table with one of them as address.",
            |it, settings| listen::show_list(it, settings);
        /// Address of the admin port; `None`: no admin port.
        admin: Option<SocketAddr>;
        + admin: Field::of_form(ADMIN_FORM).with_default("\"127.0.0.1:9090\""), Restart,
            "Address of the admin port, or \"off\". An address that is not loopback needs DRIP_ADMIN_TOKEN.",
            |it, _| show_text(&it.admin.map_or("off".to_owned(), |admin| admin.to_string()));
        /// In lower case.
        admin_hosts: Vec<String> = ADMIN_HOSTS.with_default("[]"), Now,
            "Host names that requests to the admin port may have, besides those of the host.";
        metrics: MetricsAccess = word().with_default("\"open\""), Now,
            "Whether /metrics of the admin port needs no token (\"open\"), or one for reading or changing (\"token\").";
        workers: NonZeroUsize = whole::<_, 1, { MAX_WORKERS as u64 }>().with_default_from(cores), Restart,
            "Worker threads. Default: one per core.";
        trusted_proxies: Peers = PEERS.with_default("[]"), NextRequest,
            "Peers whose forwarded_header names the client: networks, or \"unix:\" for all on socket files, or { file = \"proxies.txt\" }.";
        proxy_protocol: Peers = PEERS.with_default("[]"), NewConnections,
            "Peers that must begin each connection with a header of the PROXY protocol, version 1 or 2: networks, \"unix:\", or { file = \"proxies.txt\" }.";
        forwarded_header: ForwardedHeader = word().with_default("\"x-forwarded-for\""), NextRequest,
            "The field in which a trusted proxy names the client.";
        max_connections: NonZeroUsize = whole::<_, 1, U32>().with_default("25000"), Restart,
            "Client connections at once; more wait in the kernel.";
        /// The default is that of nginx.
        max_concurrent_streams: NonZeroU16 = whole::<_, 1, { u16::MAX as u64 }>().with_default("128"), NewConnections,
            "Requests at once on one connection over HTTP/2.";
        hold_streams: bool = BOOLEAN.with_default("true"), NextRequest,
            "Let requests over HTTP/2 wait where burst is used up, instead of rejecting them.";
        underscores_in_headers: bool = BOOLEAN.with_default("false"), NextRequest,
            "Pass fields with _ for - on and read them as that field, where limits or conditions read it, instead of dropping them.";
        keep_alive: Duration = DURATION.with_default("\"75s\""), NewConnections,
            "How long an idle client connection stays open; \"0\": a connection serves one request.";
        keep_alive_time: Duration = DURATION.with_default("\"0\""), NewConnections,
            "How long a client connection is used, up to a tenth less; \"0\": no limit.";
        /// `None`: no limit.
        keep_alive_requests: Option<NonZeroU32> = whole_or_zero::<_, U32>().with_default("0"), NewConnections,
            "Requests that a client connection carries; 0: no limit.";
        /// `None`: no probes. Applies to client and origin connections.
        tcp_keepalive: Option<Duration> = TCP_KEEPALIVE.with_default("\"60s\""), NewConnections,
            "Silence after which the kernel probes the peer: \"1s\" to \"9h\", or \"0\" for off.";
        header_timeout: Duration = TIMEOUT.with_default("\"10s\""), NewConnections,
            "Time for a whole request head, and for the TLS handshake.";
        body_timeout: Duration = TIMEOUT.with_default("\"30s\""), NewConnections,
            "Longest pause in a request body, or in which the client takes nothing of a response.";
        /// The default is 273 bytes per second. IIS and Kestrel use 240, Apache 500.
        min_body_rate: Option<ByteRate> = MIN_BODY_RATE.with_default("\"8KB/30s\""), NewConnections,
            "Least bytes of a body over a span in which the client is waited for: up to \"1MB\", over \"100ms\" to \"1h\"; \"0\": none.";
        max_header_size: usize = HEAD_SIZE.with_default("\"32KB\""), NewConnections,
            "Largest request head: \"1KB\" to \"1MB\".";
        max_body_size: Option<NonZeroU64> = SIZE_OR_ZERO.with_default("\"0\""), NextRequest,
            "Largest request body; \"0\": no limit.";
        shared_answers: NonZeroU64 = SIZE_ABOVE_ZERO.with_default("\"64MB\""), Now,
            "Memory for the answers that routes with collapse share; those not used for longest go first.";
        buffers: NonZeroU64 = SIZE_ABOVE_ZERO.with_default("\"64MB\""), Now,
            "Memory for bodies that request_buffer and response_buffer of origins read ahead; beyond it, requests go on without.";
        shutdown_timeout: Duration = DURATION.with_default("\"30s\""), Now,
            "How long a stop lets waiting requests drain.";
        stop_delay: Duration = DURATION.with_default("\"0\""), Now,
            "How long a stop first goes on to accept and serve, with /readyz at 503, until balancers send nothing more.";
        request_id: Option<Box<str>> = REQUEST_ID.optional(), NextRequest,
            "The field with an id of each request, such as \"x-request-id\": taken from a trusted proxy, else made.";
        /// Absolute path; `None`: no state file.
        state: Option<PathBuf> = FILE_NAME.optional(), Restart,
            "File in which levels and schedules outlive the process: the next one starts from it.";
        /// Certificates for TLS connections of clients; `None`: no address has TLS.
        tls: Option<Tls>;
        + tls: Field::of_form(Form::Table(Tls::TABLE)), Restart,
            "Certificates for TLS connections of clients.",
            |it, settings| show_table(it.tls.as_ref(), settings);
    }
}

/// Form of `admin`: `"off"`, or an address with a port.
const ADMIN_FORM: Form = Form::Regex("off|([0-9.]+|\\[[0-9a-fA-F:.%]+\\]):[0-9]+");

/// List of host names.
const ADMIN_HOSTS: Kind<Vec<String>> = Kind {
    form: Form::UniqueList(&Form::Regex("[A-Za-z0-9._-]{1,253}\\.?(:[0-9]{1,5})?"), 0),
    read: |node| values::list(node, "[\"drip.internal\"]", read_admin_host),
    show: |it| show_texts(it),
};

/// Name of a gateway.
const NAME: Kind<String> = Kind {
    form: Form::Regex(
        "[^\\s\\u0000-\\u001f\\u007f]([^\\u0000-\\u001f\\u007f]{0,62}[^\\s\\u0000-\\u001f\\u007f])?",
    ),
    read: |node| {
        let what = format!("1 to {MAX_NAME} printable characters such as \"edge-1\"");
        values::text_if(node, &what, is_name).map(str::to_owned)
    },
    show: show_text,
};

/// Duration that the kernel accepts for probes; `"0"` is `None`.
const TCP_KEEPALIVE: Kind<Option<Duration>> = Kind {
    form: DURATION.form,
    read: |node| {
        let silence = values::duration(node)?;
        if silence.is_zero() {
            return Some(None);
        }
        // Linux counts whole seconds, and accepts at most 32767 of them (tcp(7), `TCP_KEEPIDLE`).
        let accepted = Duration::from_secs(1)..=Duration::from_secs(9 * 3600);
        let silence = Some(silence).filter(|it| accepted.contains(it)).map(Some);
        silence.or_else(|| node.report_expected("a duration from 1s to 9h, or \"0\" for none"))
    },
    show: |it| show_text(&show_duration(it.unwrap_or_default())),
};

/// Bytes per duration; `"0"` is `None`.
const MIN_BODY_RATE: Kind<Option<ByteRate>> = Kind {
    form: Form::Regex("0|[0-9]+(GB|MB|KB|B)/([smhd]|[0-9]+(d|h|m|s|ms|us|ns))"),
    read: |node| {
        const WHAT: &str = "bytes over a span such as \"8KB/30s\", or \"0\" for none";
        if node.value.as_str() == Some("0") {
            return Some(None);
        }
        let (bytes, span) = values::read_compact(node, WHAT, ByteRate::parse)?;
        let rate = ByteRate::in_range(bytes, span).map(Some);
        rate.or_else(|| {
            node.report_expected("from a byte a second to 1MB, over a span from 100ms to 1h")
        })
    },
    show: |it| show_text(&it.map_or("0".to_owned(), |rate| rate.to_string())),
};

/// Name of a header field that can carry ids.
const REQUEST_ID: Kind<Box<str>> = Kind {
    form: HEADER_NAME_FORM,
    read: |node| {
        let name = values::text(node)?;
        if let Some(wrong) = header_fields::why_unfit_for_ids(name) {
            return node.refuse(&format!("{wrong}; write one such as \"x-request-id\""));
        }
        Some(name.into())
    },
    show: show_text,
};

/// Reads `[server]`.
///
/// `has_admin_token`: whether a token of the environment protects the admin port.
pub(crate) fn read(mut fields: Fields, has_admin_token: bool) -> Server {
    let mut server = Server::read(&mut fields);
    let has_tls = fields.peek("tls").is_some();
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
    let node = fields.peek("admin").or_else(|| fields.peek("listen"));
    if let (Some(other), Some(node)) = (other, node) {
        node.report_problem(&format!(
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

/// Reads the name of a host. A port behind it, as in the field `Host`, is ignored.
fn read_admin_host(node: Node) -> Option<String> {
    let text = node.value.as_str().unwrap_or_default();
    let name = match text.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        _ => text,
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if name.is_empty() || name.len() > MAX_HOST || !name.chars().all(is_part) {
        return node.report_expected("the name of a host such as \"drip.internal\"");
    }
    Some(name.to_ascii_lowercase())
}

/// Reads the address of the admin port; `None` if it is `"off"` or wrong.
///
/// `has_admin_token`: as in [`read`].
fn read_admin(node: Node, has_admin_token: bool) -> Option<SocketAddr> {
    let text = node.value.as_str().unwrap_or_default();
    if text == "off" {
        return None;
    }
    let Ok(address) = text.parse::<SocketAddr>() else {
        return node
            .report_expected("an address with a port such as \"127.0.0.1:9090\", or \"off\"");
    };
    if !has_admin_token && !address.ip().to_canonical().is_loopback() {
        node.report_problem(&format!(
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

    /// Returns how many requests of a key over HTTP/2 may wait although they exceed `burst`.
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
