//! A gateway that accepts the PROXY protocol, and an origin that answers with the addresses.

use std::fs;
use std::net::SocketAddr;

use crate::support::secure::write_pair;
use crate::support::{Exchange, Gateway, Origin, Site, file, free_address, zone};

pub const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n";

const LIMITS: &str = "limits = [{ zone = \"z\", burst = 1000, nodelay = true }]";

/// Starts an origin that answers with the addresses that it received.
pub fn echo_origin() -> Origin {
    Origin::answering(|exchange: &mut Exchange| {
        let received = exchange.field("x-forwarded-for").unwrap_or("-").to_owned();
        exchange.reply(received.as_bytes())
    })
}

/// Starts a gateway whose peers in `proxies` send headers. Also returns its TLS address.
///
/// `more`: further fields of `[server]`. The gateway also listens at `drip.sock` beside its file,
/// and has a key for each client and local port.
pub fn gateway(origin: &Origin, proxies: &str, more: &str) -> (Gateway, SocketAddr) {
    let site = Site::new();
    let tls = free_address();
    write_pair(site.folder(), "a", &["a.test"]);
    fs::write(site.file(), text(&site, tls, origin, proxies, more)).expect("a file");
    (Gateway::start_at(site), tls)
}

pub fn text(site: &Site, tls: SocketAddr, origin: &Origin, proxies: &str, more: &str) -> String {
    let zones = zone("z", "$remote_addr $server_port", "1r/h");
    format!(
        "[server]\nlisten = [{{ address = \"{}\", tls = false }}, \"{tls}\", \"unix:drip.sock\"]\nadmin = \"{}\"\nproxy_protocol = [{proxies}]\n{more}\n[server.tls]\ncert = \"a.pem\"\nkey = \"a.key\"\n{}\n[log]\naccess = \"access.log\"\n",
        site.address,
        site.admin,
        file(origin, &zones, &[("/", LIMITS)]),
    )
}

/// Returns whether the zone has this key.
pub fn has_key(gateway: &Gateway, key: &str) -> bool {
    let keys = gateway.admin("/api/zones/z/keys").expect("an answer");
    keys.text().contains(&format!("\"{key}\""))
}
