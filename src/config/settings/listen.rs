//! Addresses for clients: entries of `server.listen`.

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::sync::Arc;

use crate::ClientAuth;

/// Entry of `server.listen`: an address for clients, and its service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// Address to which clients connect.
    pub address: ListenAddress,
    /// Protocol and behavior at the address.
    pub service: ListenService,
    /// Client authentication at this address; `None`: no client needs a certificate.
    pub client_auth: Option<ClientAuth>,
    /// Name by which routes select the address.
    pub name: Option<Arc<str>>,
}

/// Address to which clients connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// IP address and port.
    ///
    /// `[::]` accepts IPv4 too. For port 0 the kernel picks a port.
    Tcp(SocketAddr),
    /// Unix socket.
    Unix {
        /// Absolute path.
        path: PathBuf,
        /// Permissions; `None`: those of the umask.
        mode: Option<SocketMode>,
    },
}

/// Service at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenService {
    /// HTTP/1, or HTTP/2 by prior knowledge.
    Plain,
    /// HTTP/1 and HTTP/2 over TLS, with the certificates of `[server.tls]`. Never on a Unix socket.
    Tls,
    /// HTTP without TLS that redirects nearly every request to this port, over TLS.
    Redirect(NonZeroU16),
}

impl ListenService {
    /// Returns the service of an address that is written as a text.
    ///
    /// `has_tls`: the file has `[server.tls]`.
    pub fn of_text(address: &ListenAddress, has_tls: bool) -> Self {
        match address {
            ListenAddress::Tcp(_) if has_tls => Self::Tls,
            ListenAddress::Tcp(_) | ListenAddress::Unix { .. } => Self::Plain,
        }
    }
}

/// Permissions of a Unix socket: 0 to 0o777.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketMode(u32);

impl SocketMode {
    /// Reads three octal digits, or four digits of which the first is 0.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('0').filter(|rest| rest.len() == 3);
        let digits = digits.unwrap_or(text);
        let is_octal =
            digits.len() == 3 && digits.bytes().all(|digit| (b'0'..=b'7').contains(&digit));
        let mode = u32::from_str_radix(digits, 8).ok()?;
        is_octal.then_some(Self(mode))
    }

    /// Returns the permission bits, as chmod(2) takes them.
    pub fn bits(self) -> u32 {
        self.0
    }
}

impl fmt::Display for SocketMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix { path, .. } => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_three_octal_digits_with_or_without_a_zero_before() {
        for (text, mode) in [
            ("0660", "0660"),
            ("660", "0660"),
            ("000", "0000"),
            ("0777", "0777"),
        ] {
            assert_eq!(SocketMode::parse(text).unwrap().to_string(), mode, "{text}");
        }
        for text in [
            "", "0", "60", "0680", "1660", "00660", "+66", "-660", "0o660", "u+x",
        ] {
            assert_eq!(SocketMode::parse(text), None, "{text}");
        }
    }
}
