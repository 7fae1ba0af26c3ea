//! Address of a gateway's admin port, as the commands that connect to one accept it.

use std::fmt::{self, Display};
use std::str::FromStr;

use http::uri::Authority;

/// Address of a gateway's admin port: a host and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AdminAddress(Authority);

/// Message about a text that is not an address.
const FORM: &str = "write HOST:PORT or http://HOST:PORT, such as 127.0.0.1:9090";

impl FromStr for AdminAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let rest = text.strip_prefix("http://").unwrap_or(text);
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let authority: Authority = rest.parse().map_err(|_| FORM)?;
        let is_complete = !authority.host().is_empty() && authority.port_u16().is_some();
        // Text before an @ would be a secret on the command line. drip does not need it.
        let is_usable = is_complete && !authority.as_str().contains('@');
        is_usable.then_some(Self(authority)).ok_or(FORM)
    }
}

impl AdminAddress {
    /// Returns the URL, such as `http://127.0.0.1:9090`.
    pub fn url(&self) -> String {
        format!("http://{self}")
    }
}

/// Writes the address, such as `127.0.0.1:9090`.
impl Display for AdminAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_begin_with_http_and_is_shown_without() {
        for (text, shown) in [
            ("127.0.0.1:9090", "127.0.0.1:9090"),
            ("http://127.0.0.1:9090", "127.0.0.1:9090"),
            ("http://[::1]:9090/", "[::1]:9090"),
            ("gateway.example:80", "gateway.example:80"),
        ] {
            assert_eq!(text.parse::<AdminAddress>().unwrap().to_string(), shown);
        }
    }

    #[test]
    fn other_texts_name_no_admin_port() {
        for text in [
            "127.0.0.1",
            "https://127.0.0.1:9090",
            "127.0.0.1:99999",
            "a@127.0.0.1:9090",
            "http://127.0.0.1:9090/metrics",
        ] {
            assert_eq!(text.parse::<AdminAddress>(), Err(FORM), "{text}");
        }
    }
}
