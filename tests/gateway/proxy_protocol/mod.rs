//! The PROXY protocol: real proxies in front, and bytes that no proxy sends.

mod abuse;
mod proxies;

use std::fs;
use std::net::SocketAddr;

use crate::support::nginx::{file, zone};
use crate::support::{Exchange, Gateway, Origin, Raw, Site, free_address};
use crate::tls::secure::{started, write_pair};

const LIMITS: &str = "limits = [{ zone = \"z\", burst = 1000, nodelay = true }]";

/// An origin that answers with the addresses that it is told.
fn telling() -> Origin {
    Origin::answering(|exchange: &mut Exchange| {
        let told = exchange.field("x-forwarded-for").unwrap_or("-").to_owned();
        exchange.reply(told.as_bytes())
    })
}

/// A gateway whose peers in `proxies` send headers, with `more` of `[server]`, and its address with TLS.
///
/// It also listens at `drip.sock` beside its file, and has a key for each client and local port.
fn gateway(origin: &Origin, proxies: &str, more: &str) -> (Gateway, SocketAddr) {
    let site = Site::new();
    let tls = free_address();
    write_pair(site.folder(), "a", &["a.test"]);
    fs::write(site.file(), text(&site, tls, origin, proxies, more)).expect("a file");
    (started(site), tls)
}

fn text(site: &Site, tls: SocketAddr, origin: &Origin, proxies: &str, more: &str) -> String {
    let zones = zone("z", "$remote_addr $server_port", "1r/h");
    format!(
        "[server]\nlisten = [{{ address = \"{}\", tls = false }}, \"{tls}\", \"unix:drip.sock\"]\nadmin = \"{}\"\nproxy_protocol = [{proxies}]\n{more}\n[server.tls]\ncert = \"a.pem\"\nkey = \"a.key\"\n{}\n[log]\naccess = \"access.log\"\n",
        site.address,
        site.admin,
        file(origin, &zones, &[("/", LIMITS)]),
    )
}

/// A header of version 2: a command, a protocol, and what follows.
fn binary(command: u8, protocol: u8, block: &[u8]) -> Vec<u8> {
    let length = u16::try_from(block.len()).expect("a short block");
    let fixed = [command, protocol];
    [
        &b"\r\n\r\n\0\r\nQUIT\n"[..],
        &fixed[..],
        &length.to_be_bytes(),
        block,
    ]
    .concat()
}

/// From `192.0.2.1:4711` to `198.51.100.2:443`.
const ADDRESSES: [u8; 12] = [192, 0, 2, 1, 198, 51, 100, 2, 0x12, 0x67, 0x01, 0xbb];
/// The same as a text.
const TEXT: &[u8] = b"PROXY TCP4 192.0.2.1 198.51.100.2 4711 443\r\n";

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n";

/// What the origin was told for a header and a request in one write.
fn told(to: SocketAddr, header: &[u8]) -> String {
    let mut client = Raw::connect(to);
    client.send([header, REQUEST].concat());
    let answer = client.answer();
    assert_eq!(answer.status(), 200, "{answer:?}");
    String::from_utf8(answer.body).expect("text")
}

/// Whether the zone has this key.
fn has_key(gateway: &Gateway, key: &str) -> bool {
    let keys = gateway.admin("/api/zones/z/keys").expect("an answer");
    keys.text().contains(&format!("\"{key}\""))
}
