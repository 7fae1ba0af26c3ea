use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::num::{NonZeroU16, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use http::uri::PathAndQuery;

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
    /// Longest pause between two bytes of an answer's body, and longest time in which the origin takes no
    /// byte of a request's body; never zero.
    pub body_timeout: Duration,
    /// Longest time without a byte in either direction on an upgraded connection; never zero.
    pub tunnel_timeout: Duration,
    /// Of a response's head, in bytes: 1024 to 1048576.
    pub max_header_size: usize,
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
    /// How its servers are asked whether they are well; `None`: they are not.
    pub health: Option<Health>,
}

/// `[origins.NAME.health]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Health {
    /// What is asked for; begins with `/`, and may have a query.
    pub path: PathAndQuery,
    /// Between two questions; never zero.
    pub interval: Duration,
    /// From connecting to the head of the answer; never zero, and may be longer than the interval.
    pub timeout: Duration,
    /// Failures in a row that make a server unhealthy; at least 1.
    pub unhealthy_after: u32,
    /// Good answers in a row that make it healthy again; at least 1.
    pub healthy_after: u32,
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

/// One server of an origin, written as in the file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ServerUrl {
    /// `http://host:port` or `https://host:port`.
    Tcp {
        /// Whether the connection is encrypted.
        scheme: Scheme,
        /// Where it is, and over TLS whom its certificate is for.
        host: Host,
        /// The scheme's own where the file names none.
        port: NonZeroU16,
    },
    /// `unix:/path`: plain HTTP through a socket file, absolute and short enough for the kernel.
    Unix(PathBuf),
}

/// What is spoken over a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Plain HTTP.
    Http,
    /// HTTP over TLS.
    Https,
}

/// The host of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// In lowercase: labels of up to 63 letters, digits, `-` and `_`, 253 bytes in all.
    Name(String),
    /// An address.
    Address(IpAddr),
}

impl ServerUrl {
    /// What `Host` names it: without the port where that is the scheme's own, and `localhost` behind a socket file,
    /// as nginx has it.
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
    /// The port where none is named: 80 or 443.
    #[must_use]
    pub fn default_port(self) -> NonZeroU16 {
        const HTTP: NonZeroU16 = NonZeroU16::new(80).unwrap();
        const HTTPS: NonZeroU16 = NonZeroU16::new(443).unwrap();
        match self {
            Self::Http => HTTP,
            Self::Https => HTTPS,
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http => "http",
            Self::Https => "https",
        })
    }
}

impl Host {
    /// As resolvers and certificates have it: an IPv6 address stands without its brackets.
    #[must_use]
    pub fn bare(&self) -> Cow<'_, str> {
        match self {
            Self::Name(name) => Cow::Borrowed(name),
            Self::Address(address) => Cow::Owned(address.to_string()),
        }
    }
}

/// As a URL has it: an IPv6 address stands in brackets.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}
