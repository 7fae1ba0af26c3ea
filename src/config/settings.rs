use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;

use super::KeyTemplate;
use crate::limit::{Limit, Rate};

/// Everything a gateway is told by its file, checked: indices point at what is there, names are unique,
/// numbers are in range.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The gateway's own side: addresses, workers, patience with clients.
    pub server: Server,
    /// In the order of the file; at least one.
    pub origins: Vec<Origin>,
    /// In the order of the file; may be empty.
    pub zones: Vec<Zone>,
    /// In the order of the file; at least one.
    pub routes: Vec<Route>,
    /// What is logged, and where.
    pub log: Log,
}

impl Settings {
    /// The route that takes a request, and its index: the longest matching path wins; of those with the same path one
    /// that names the host before one that does not; then the first in the file. What is not known of the request, its
    /// host or its method, rules no route out.
    #[must_use]
    pub fn route(
        &self,
        path: &[u8],
        host: Option<&str>,
        method: Option<&str>,
    ) -> Option<(usize, &Route)> {
        let takes = |route: &Route| {
            let by_host = route
                .host
                .as_deref()
                .zip(host)
                .is_none_or(|(named, host)| named == host);
            let by_method = |method| {
                route.methods.is_empty() || route.methods.iter().any(|named| named == method)
            };
            route.path.matches(path) && by_host && method.is_none_or(by_method)
        };
        let matching = self
            .routes
            .iter()
            .enumerate()
            .filter(|(_, route)| takes(route));
        // Of equals `max_by_key` takes the last, and the first is wanted.
        matching
            .rev()
            .max_by_key(|(_, route)| (route.path.precedence(), route.host.is_some()))
    }

    /// What differs from the settings that the process was started with, and cannot change while it runs.
    #[must_use]
    pub fn needing_restart(&self, started_with: &Self) -> Vec<&'static str> {
        let (new, old) = (&self.server, &started_with.server);
        let fixed = [
            ("server.listen", new.listen != old.listen),
            ("server.admin", new.admin != old.admin),
            ("server.workers", new.workers != old.workers),
            (
                "server.max_connections",
                new.max_connections != old.max_connections,
            ),
            ("server.keep_alive", new.keep_alive != old.keep_alive),
            (
                "server.header_timeout",
                new.header_timeout != old.header_timeout,
            ),
            ("log.format", self.log.format != started_with.log.format),
        ];
        fixed
            .into_iter()
            .filter_map(|(name, changed)| changed.then_some(name))
            .collect()
    }
}

/// `[server]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Where clients connect; at least one, none of them twice.
    pub listen: Vec<Listen>,
    /// The admin port; `None`: there is none.
    pub admin: Option<SocketAddr>,
    /// Worker threads, at most 1024.
    pub workers: NonZeroUsize,
    /// Peers whose [`Server::forwarded_header`] is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// The field in which a trusted peer names its client.
    pub forwarded_header: ForwardedHeader,
    /// Past it, new connections wait in the kernel's backlog.
    pub max_connections: NonZeroUsize,
    /// How long an idle client connection is kept; zero: none is.
    pub keep_alive: Duration,
    /// For the whole head of a request; never zero.
    pub header_timeout: Duration,
    /// How long a stop lets the queues drain; zero: not at all.
    pub shutdown_timeout: Duration,
}

/// The field in which a trusted peer names its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardedHeader {
    /// `X-Forwarded-For`.
    XForwardedFor,
    /// `Forwarded`, as RFC 7239 has it.
    Forwarded,
}

/// Where clients connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// An address and port; `[::]` takes IPv4 too. Port 0 is one that the kernel picks.
    Tcp(SocketAddr),
    /// A socket file, absolute.
    Unix(PathBuf),
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// `[origins.NAME]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Origin {
    /// Letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// At least one, none of them twice.
    pub servers: Vec<ServerUrl>,
    /// Never zero.
    pub connect_timeout: Duration,
    /// Until the whole response head; never zero.
    pub response_timeout: Duration,
    /// Requests at the origin at once, over all keys and workers; `None`: no limit.
    pub max_in_flight: Option<NonZeroUsize>,
    /// How long a request whose turn has come waits for a free place.
    pub queue_timeout: Duration,
    /// Failures in a row that take one of several servers out; at least 1.
    pub max_fails: u32,
    /// For how long.
    pub fail_timeout: Duration,
    /// Idle connections kept per worker and server; 0: none.
    pub keep_alive: usize,
    /// What the origin is told that it is called.
    pub host: HostRule,
}

/// The `Host` that an origin gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostRule {
    /// The client's.
    Preserve,
    /// The server's own, as its URL has it.
    Origin,
    /// This one.
    Literal(String),
}

/// One server of an origin, as `http://host:port`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServerUrl {
    /// A lowercase name, or an address; an IPv6 address stands here without its brackets.
    pub host: String,
    /// Never 0.
    pub port: u16,
}

impl ServerUrl {
    /// `host:port`, as `Host` names it.
    #[must_use]
    pub fn authority(&self) -> String {
        let Self { host, port } = self;
        if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        }
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.authority())
    }
}

/// `[zones.NAME]`: a bucket for each value of a key.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone {
    /// Letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// What tells one bucket from another.
    pub key: KeyTemplate,
    /// How fast each bucket leaks.
    pub rate: Rate,
    /// Remembered keys, over all workers.
    pub max_keys: NonZeroUsize,
    /// A drained key is forgotten after this.
    pub idle_timeout: Duration,
    /// IPv6 addresses in keys are cut to this many bits, 0 to 128.
    pub ipv6_prefix: u8,
    /// Client addresses that are never limited.
    pub exempt: Vec<IpNet>,
}

impl Zone {
    /// Whether requests of this client are never limited here.
    #[must_use]
    pub fn is_exempt(&self, client: IpAddr) -> bool {
        self.exempt.iter().any(|net| net.contains(&client))
    }

    /// `address` cut to `ipv6_prefix` where it is of IPv6: whoever has one address there has a whole prefix.
    #[must_use]
    pub fn cut(&self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V4(_) => address,
            IpAddr::V6(whole) => {
                let mask = u128::MAX
                    .checked_shl(128 - u32::from(self.ipv6_prefix.min(128)))
                    .unwrap_or(0);
                IpAddr::V6((whole.to_bits() & mask).into())
            }
        }
    }
}

/// One of the `[[routes]]`. No two have the same path, host and methods.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// Which paths it takes.
    pub path: PathPattern,
    /// Which host, in lowercase, without a port; `None`: every one.
    pub host: Option<String>,
    /// Which methods; empty: every one.
    pub methods: Vec<String>,
    /// Index into [`Settings::origins`].
    pub origin: usize,
    /// The zones it asks, each once; empty: it only forwards.
    pub limits: Vec<RouteLimit>,
    /// Decide, count and log, but pass everything at once.
    pub dry_run: bool,
    /// 400 to 599.
    pub reject_status: u16,
    /// The body of a rejection.
    pub reject_body: String,
    /// Which fields tell the client about its limits.
    pub headers: Dialects,
}

impl Route {
    /// What logs and metrics call it: its path as written, after its host if it has one.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.host {
            Some(host) => format!("{host} {}", self.path),
            None => self.path.to_string(),
        }
    }
}

/// Which paths a route takes, compared byte by byte as nginx compares prefixes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PathPattern {
    /// `"/fast"`: every path that begins so, `/fast.html` too.
    Prefix(String),
    /// `"= /fast"`: this path alone.
    Exact(String),
}

impl PathPattern {
    /// Whether the route takes this path, which comes without its query.
    #[must_use]
    pub fn matches(&self, path: &[u8]) -> bool {
        match self {
            Self::Prefix(prefix) => path.starts_with(prefix.as_bytes()),
            Self::Exact(exact) => path == exact.as_bytes(),
        }
    }
}

impl PathPattern {
    /// Of the patterns that match a path, the one with the highest precedence wins: the longest, and of the same
    /// length the exact one.
    #[must_use]
    pub fn precedence(&self) -> (usize, bool) {
        match self {
            Self::Prefix(prefix) => (prefix.len(), false),
            Self::Exact(exact) => (exact.len(), true),
        }
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix(prefix) => f.write_str(prefix),
            Self::Exact(exact) => write!(f, "= {exact}"),
        }
    }
}

/// What a route asks of one zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteLimit {
    /// Index into [`Settings::zones`].
    pub zone: usize,
    /// The numbers; a delay is never above its burst, and `max_wait` is the route's.
    pub limit: Limit,
}

/// Which header fields tell a client about its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialects {
    /// `X-RateLimit-Limit` and its kin.
    pub x_ratelimit: bool,
    /// `RateLimit` and `RateLimit-Policy`, the IETF draft.
    pub ratelimit: bool,
    /// `Server-Timing`: how long the request queued.
    pub server_timing: bool,
}

/// `[log]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// The least severe message that is written.
    pub level: Level,
    /// Of both logs.
    pub format: Format,
    /// Where the access log goes.
    pub access: Access,
}

/// How severe a message is, the most severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something does not work.
    Error,
    /// Something will not work for long.
    Warn,
    /// What an operator wants to know on a good day.
    Info,
    /// What a developer of the gateway wants to know.
    Debug,
    /// Everything.
    Trace,
}

/// How a line of a log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// One object a line.
    Json,
}

/// Where the access log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nowhere.
    Off,
    /// Standard output.
    Stdout,
    /// A file, absolute.
    File(PathBuf),
}
