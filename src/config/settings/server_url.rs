//! URL of an origin's server.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;

use crate::Words;
use crate::tables::kinds::words;

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

    /// Returns the server at one address of its name.
    pub fn at(&self, of_name: IpAddr) -> Self {
        let mut url = self.clone();
        if let Self::Tcp { address, .. } = &mut url {
            *address = Some(of_name);
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
                write!(f, "{scheme}://{host}:{port}")?;
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

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
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
