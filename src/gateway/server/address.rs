//! Addresses and URLs for programs on this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Returns the address at which programs on this machine reach a socket bound to `address`.
pub fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Returns the URL of the live page of a gateway whose admin port is `admin`.
pub fn live_page(admin: SocketAddr) -> String {
    format!("http://{}/", reachable(admin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_live_page_has_an_address_that_a_browser_can_open() {
        let pages = [
            ("127.0.0.1:9090", "http://127.0.0.1:9090/"),
            ("0.0.0.0:9090", "http://127.0.0.1:9090/"),
            ("[::]:81", "http://[::1]:81/"),
            ("192.0.2.1:81", "http://192.0.2.1:81/"),
        ];
        for (admin, page) in pages {
            assert_eq!(live_page(admin.parse().unwrap()), page);
        }
    }
}
