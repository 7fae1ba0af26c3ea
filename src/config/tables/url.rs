//! URL of a server of an origin: `http://host:port`, `https://host:port`, `h2c://host:port` or
//! `unix:/path`.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU16;
use std::os::unix::net::SocketAddr;
use std::path::PathBuf;

use super::prelude::*;

/// URL of an origin's server, as the file writes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ServerUrl {
    /// `http://host:port`, `https://host:port` or `h2c://host:port`.
    Tcp {
        /// Protocol of the connection.
        scheme: Scheme,
        /// Host to connect to. Over TLS, the certificate must be for this host.
        host: Host,
        /// Port; the scheme's default if the file has none.
        port: NonZeroU16,
        /// Address of the name that this server uses, if `resolve` makes one server per address.
        address: Option<IpAddr>,
    },
    /// `unix:/path`: plain HTTP through a Unix socket.
    ///
    /// The path is absolute, and short enough for the kernel.
    Unix(PathBuf),
}

words! {
    /// Protocol over a TCP connection.
    #[derive(Hash)]
    pub enum Scheme {
        /// Plain HTTP.
        Http = "http",
        /// HTTP over TLS.
        Https = "https",
        /// HTTP/2 without TLS, by prior knowledge (RFC 9113, section 3.3).
        H2c = "h2c",
    }
}

/// Host of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name in lowercase.
    ///
    /// Each label has up to 63 letters, digits, `-` and `_`. The name has at most 253 bytes.
    Name(String),
    /// An IP address.
    Address(IpAddr),
}

impl ServerUrl {
    /// Returns the scheme; `None` for a Unix socket.
    fn scheme(&self) -> Option<Scheme> {
        match self {
            Self::Tcp { scheme, .. } => Some(*scheme),
            Self::Unix(_) => None,
        }
    }

    /// Returns whether the server uses HTTP/2 without TLS.
    pub fn is_h2c(&self) -> bool {
        self.scheme() == Some(Scheme::H2c)
    }

    /// Returns the name of the host, unless it is an address.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Tcp {
                host: Host::Name(name),
                ..
            } => Some(name),
            Self::Tcp { .. } | Self::Unix(_) => None,
        }
    }

    /// Returns the URL of the server at one of the addresses of its host name.
    pub fn at(&self, address_of_name: IpAddr) -> Self {
        let mut url = self.clone();
        if let Self::Tcp { address, .. } = &mut url {
            *address = Some(address_of_name);
        }
        url
    }

    /// Returns whether connections to the server are encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.scheme() == Some(Scheme::Https)
    }

    /// Returns the server's name in a `Host` field, as nginx writes it.
    ///
    /// The port is omitted if it is the scheme's default. A Unix socket is called `localhost`.
    pub fn authority(&self) -> String {
        match self {
            Self::Tcp {
                scheme, host, port, ..
            } if *port == scheme.default_port() => host.to_string(),
            Self::Tcp { host, port, .. } => format!("{host}:{port}"),
            Self::Unix(_) => "localhost".to_owned(),
        }
    }
}

/// Writes the URL as in the file, always with the port.
///
/// The address follows if the name has one server per address.
impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp {
                scheme,
                host,
                port,
                address,
            } => {
                write!(f, "{}://{host}:{port}", scheme.word())?;
                address.map_or(Ok(()), |address| write!(f, " ({address})"))
            }
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Scheme {
    /// Returns the default port of the scheme: 80 or 443.
    pub fn default_port(self) -> NonZeroU16 {
        const HTTP: NonZeroU16 = NonZeroU16::new(80).unwrap();
        const HTTPS: NonZeroU16 = NonZeroU16::new(443).unwrap();
        match self {
            Self::Http | Self::H2c => HTTP,
            Self::Https => HTTPS,
        }
    }
}

impl Host {
    /// Returns the host as resolvers and certificates write it: IPv6 addresses without brackets.
    pub fn bare(&self) -> Cow<'_, str> {
        match self {
            Self::Name(name) => Cow::Borrowed(name),
            Self::Address(address) => Cow::Owned(address.to_string()),
        }
    }
}

/// Writes the host as in a URL: IPv6 addresses in brackets.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// Form of a URL.
pub(super) const FORM: Form = Form::Regex(
    "(https?|h2c)://(\\[[0-9a-fA-F.]*:[0-9a-fA-F:.]*\\]|[0-9A-Za-z_-]+([.][0-9A-Za-z_-]+)*[.]?)(:[0-9]+)?|unix:(.|\\n)+",
);

/// Message about a URL with a path, a query or a user.
const NOTHING_MORE: &str = "a server is written \"http://host:port\", \"https://host:port\" or \"h2c://host:port\", with no path, query or user";

/// Reads one server. The path of a Unix socket is relative to the folder of the file.
pub(super) fn read(node: Node) -> Option<ServerUrl> {
    const WHAT: &str = "a server such as \"http://127.0.0.1:9000\"";
    if let Some(hidden) = without_user(node) {
        return node.refuse(&format!("{NOTHING_MORE}; found {}", toml_string(&hidden)));
    }
    values::parse(node, WHAT, |text| match text.strip_prefix("unix:") {
        Some(path) => parse_unix(path, node),
        None => parse_tcp(text),
    })
}

/// Returns a wrong URL with dots instead of its user, so that no message shows a password.
///
/// `None`: the URL has no user, or comes from the environment and is not shown at all.
fn without_user(node: Node) -> Option<String> {
    let text = node.value.as_str().filter(|it| !it.starts_with("unix:"))?;
    let (_, host) = text.rsplit_once('@').filter(|_| !node.is_expanded())?;
    let scheme = text
        .find("://")
        .map_or("", |end| &text[..end + "://".len()]);
    Some(format!("{scheme}...@{host}"))
}

/// Parses the path of a Unix socket. `node`: the value with the URL.
fn parse_unix(path: &str, node: Node) -> Result<ServerUrl, &'static str> {
    if path.is_empty() {
        return Err("a socket file is written \"unix:/run/app.sock\"");
    }
    let path = node.in_folder(path);
    match SocketAddr::from_pathname(&path) {
        Ok(_) => Ok(ServerUrl::Unix(path)),
        Err(_) => Err("a socket file's absolute name has at most 107 bytes, none of them 0"),
    }
}

/// Parses a URL with a host, and perhaps a port.
fn parse_tcp(text: &str) -> Result<ServerUrl, &'static str> {
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
    // An IPv6 address in brackets, and the text behind them.
    let bracketed = authority.strip_prefix('[');
    let bracketed = bracketed.and_then(|rest| rest.split_once(']'));
    let (host, port) = match bracketed {
        Some((address, "")) => (parse_ipv6(address), None),
        Some((address, rest)) => (
            parse_ipv6(address),
            Some(rest.strip_prefix(':').ok_or(FORM)?),
        ),
        None => match authority.split_once(':') {
            Some((host, port)) => (parse_name_or_ipv4(host), Some(port)),
            None => (parse_name_or_ipv4(authority), None),
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

/// Parses an IPv6 address without brackets.
fn parse_ipv6(text: &str) -> Option<Host> {
    let address = text.parse::<Ipv6Addr>().ok()?;
    Some(Host::Address(IpAddr::V6(address)))
}

/// Parses a host name, or an IPv4 address.
fn parse_name_or_ipv4(text: &str) -> Option<Host> {
    if let Ok(address) = text.parse() {
        return Some(Host::Address(IpAddr::V4(address)));
    }
    // A trailing dot means that the resolver must not use its search list.
    let labels = text.strip_suffix('.').unwrap_or(text);
    let is_label = |label: &str| {
        let is_part = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        (1..=63).contains(&label.len()) && label.bytes().all(is_part)
    };
    let is_name = text.len() <= 253 && labels.split('.').all(is_label);
    is_name.then(|| Host::Name(text.to_lowercase()))
}
