use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::num::{NonZeroU16, NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use http::uri::PathAndQuery;

use super::{Backoff, StoreKind};
use crate::limit::{Class, GateLimits, Rate};

/// `[origins.NAME]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Origin {
    /// Letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// At least one, without duplicates.
    pub servers: Vec<ServerUrl>,
    /// Longest time to open a connection; never zero.
    pub connect_timeout: Duration,
    /// Longest time until the whole response head has arrived; never zero.
    pub response_timeout: Duration,
    /// Longest pause in a body; never zero.
    ///
    /// It is the longest time between two bytes of a response's body, and the longest time in
    /// which the origin takes no byte of a request's body.
    pub body_timeout: Duration,
    /// Longest time without a byte in either direction on an upgraded connection; never zero.
    pub tunnel_timeout: Duration,
    /// Largest response head, in bytes: 1024 to 1048576.
    pub max_header_size: usize,
    /// The pace of all departures to the origin together; `None`: no pace.
    pub rate: Option<Rate>,
    /// Where its schedule is: if in Redis, all gateways that use it share `rate`, which is not
    /// `None` then.
    pub store: StoreKind,
    /// How many gateways share the rate, until Redis has told; `None`: not known.
    pub gateways: Option<NonZeroU32>,
    /// Most requests at the origin at once, over all keys and workers; `None`: no limit.
    pub max_in_flight: Option<NonZeroUsize>,
    /// Classes of traffic that share the gate by weight, in the order of the file.
    ///
    /// The first is that of all requests that name no other. Empty: there is one class for all.
    pub classes: Vec<Class>,
    /// Index of the zone whose keys share the gate fairly; `None`: one FIFO queue for all.
    pub share: Option<usize>,
    /// Requests of one key that may wait at the gate. Without `share` it has no effect.
    pub queue: NonZeroUsize,
    /// Requests of all keys that may wait at the gate.
    pub max_queue: NonZeroUsize,
    /// Longest wait at the gate; zero: nobody waits.
    pub queue_timeout: Duration,
    /// Longest wait for an origin that cannot be reached; zero: nobody waits for it.
    ///
    /// If it is above zero, `queue_timeout` is too.
    pub hold: Duration,
    /// Consecutive failures after which a server is not used; at least 1.
    ///
    /// Applies only to an origin with several servers.
    pub max_fails: u32,
    /// How long such a server is not used.
    pub fail_timeout: Duration,
    /// Idle connections kept for each worker and server; 0: none.
    pub keep_alive: usize,
    /// The `Host` that the origin gets.
    pub host: HostRule,
    /// Whether servers over TLS are offered HTTP/2.
    pub http2: Http2,
    /// How it backs off while the origin is in trouble; `None`: not at all.
    pub backoff: Option<Backoff>,
    /// Health checks of the servers; `None`: there are none.
    pub health: Option<Health>,
}

impl Origin {
    /// What its gate lets through; `None` if it has no gate.
    #[must_use]
    pub fn gate(&self) -> Option<GateLimits> {
        let has_gate = self.is_limited() || self.holds();
        has_gate.then(|| GateLimits {
            rate: self.rate,
            max_in_flight: self.max_in_flight.map(NonZeroUsize::get),
            queue: self.share.map(|_| self.queue.get()),
            max_queue: self.max_queue.get(),
        })
    }

    /// What its gate lets through while the origin can be reached; `None` if that is everything.
    #[must_use]
    pub fn gate_limits(&self) -> Option<GateLimits> {
        self.gate().filter(|_| self.is_limited())
    }

    /// Whether each departure is charged to a key or a class, also that of a request that need not
    /// wait at the gate.
    #[must_use]
    pub fn charges_departures(&self) -> bool {
        self.share.is_some() || !self.classes.is_empty()
    }

    /// Whether requests wait for it while it cannot be reached.
    #[must_use]
    pub fn holds(&self) -> bool {
        !self.hold.is_zero()
    }

    /// The rate that it shares with other gateways; `None` if it shares none.
    #[must_use]
    pub fn shared_rate(&self) -> Option<Rate> {
        self.rate.filter(|_| self.store == StoreKind::Redis)
    }

    fn is_limited(&self) -> bool {
        self.rate.is_some() || self.max_in_flight.is_some() || self.backoff.is_some()
    }
}

/// `[origins.NAME.health]`: how servers are probed.
#[derive(Clone, Debug, PartialEq)]
pub struct Health {
    /// Path of the probe; begins with `/`, and may have a query.
    pub path: PathAndQuery,
    /// Time between two probes; never zero.
    pub interval: Duration,
    /// Time limit of a probe, from connecting to the response head; never zero.
    ///
    /// It may be longer than the interval.
    pub timeout: Duration,
    /// Consecutive failures that make a server unhealthy; at least 1.
    pub unhealthy_after: u32,
    /// Consecutive good responses that make it healthy again; at least 1.
    pub healthy_after: u32,
}

/// The `Host` that an origin gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostRule {
    /// The client's `Host`.
    Preserve,
    /// The server's own host, as in its URL.
    Origin,
    /// This text.
    Literal(String),
}

/// One server of an origin, as the file writes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ServerUrl {
    /// `http://host:port`, `https://host:port` or `h2c://host:port`.
    Tcp {
        /// Whether the connection is encrypted.
        scheme: Scheme,
        /// The host to connect to. Over TLS, the certificate must be for this host.
        host: Host,
        /// The port; the scheme's default if the file names none.
        port: NonZeroU16,
    },
    /// `unix:/path`: plain HTTP through a socket file.
    ///
    /// The path is absolute, and short enough for the kernel.
    Unix(PathBuf),
}

/// The protocol over a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Plain HTTP.
    Http,
    /// HTTP over TLS.
    Https,
    /// HTTP/2 without TLS, by prior knowledge (RFC 9113, section 3.3).
    H2c,
}

/// Whether servers over TLS are offered HTTP/2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Http2 {
    /// The server chooses, by ALPN.
    Auto,
    /// HTTP/1.1 only.
    Off,
}

impl Http2 {
    /// All values by their names in the file.
    pub const NAMED: [(&'static str, Self); 2] = [("auto", Self::Auto), ("off", Self::Off)];
}

/// The host of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name in lowercase.
    ///
    /// It has labels of up to 63 letters, digits, `-` and `_`, and at most 253 bytes in all.
    Name(String),
    /// An IP address.
    Address(IpAddr),
}

impl ServerUrl {
    /// Whether the server is spoken to over HTTP/2 without TLS.
    #[must_use]
    pub fn is_h2c(&self) -> bool {
        matches!(
            self,
            Self::Tcp {
                scheme: Scheme::H2c,
                ..
            }
        )
    }

    /// Whether connections to the server are encrypted.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        matches!(
            self,
            Self::Tcp {
                scheme: Scheme::Https,
                ..
            }
        )
    }

    /// The server's name in a `Host` field, as nginx writes it.
    ///
    /// The port is left out if it is the scheme's default. A socket file is called `localhost`.
    #[must_use]
    pub fn authority(&self) -> String {
        match self {
            Self::Tcp { scheme, host, port } if *port == scheme.default_port() => host.to_string(),
            Self::Tcp { host, port, .. } => format!("{host}:{port}"),
            Self::Unix(_) => "localhost".to_owned(),
        }
    }
}

/// As the file writes it, always with the port.
impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { scheme, host, port } => write!(f, "{scheme}://{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Scheme {
    /// The port if the URL has none: 80 or 443.
    #[must_use]
    pub fn default_port(self) -> NonZeroU16 {
        const HTTP: NonZeroU16 = NonZeroU16::new(80).unwrap();
        const HTTPS: NonZeroU16 = NonZeroU16::new(443).unwrap();
        match self {
            Self::Http | Self::H2c => HTTP,
            Self::Https => HTTPS,
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::H2c => "h2c",
        })
    }
}

impl Host {
    /// The host as resolvers and certificates write it: an IPv6 address has no brackets.
    #[must_use]
    pub fn bare(&self) -> Cow<'_, str> {
        match self {
            Self::Name(name) => Cow::Borrowed(name),
            Self::Address(address) => Cow::Owned(address.to_string()),
        }
    }
}

/// As in a URL: an IPv6 address is in brackets.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}
