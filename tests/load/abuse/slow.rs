//! Tests of clients that send almost nothing.

use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

use crate::load::abuse::crowd::{One, raise_descriptors, watch};
use crate::load::abuse::{KB, MORE_DESCRIPTORS};
use crate::support::others::Others;
use crate::support::process::Process;
use crate::support::secure::write_pair;
use crate::support::{Gateway, Origin, Site, eventually, free_address, one_zone, quarter_alone};

/// Starts a gateway with TLS at the second address. A peer at 127.0.0.9 must name its client.
fn behind_proxies(origin: &Origin) -> (Gateway, SocketAddr) {
    let (site, tls) = (Site::new(), free_address());
    write_pair(site.folder(), "a", &["a.test"]);
    let more = "workers = 2\nheader_timeout = \"1s\"\nproxy_protocol = [\"127.0.0.9\"]\n\
                [server.tls]\ncert = \"a.pem\"\nkey = \"a.key\"\n";
    let zone = one_zone(origin, "1000r/s", "burst = 1000");
    let zone = zone.replace("servers =", "keep_alive = 4\nservers =");
    let plain = format!("[\"{}\"]", site.address);
    let both = format!(
        "[{{ address = \"{}\", tls = false }}, \"{tls}\"]",
        site.address
    );
    let text = site.text(&format!("{more}{zone}"));
    fs::write(site.file(), text.replacen(&plain, &both, 1)).expect("a file");
    (Gateway::start_at(site), tls)
}

#[test]
fn heads_handshakes_and_headers_of_proxies_that_come_by_the_byte_are_cut_off() {
    const HEAD: &[u8] = b"GET /?key=slow HTTP/1.1\r\n";
    const PROXY: &[u8] = b"PROXY TCP4 192.0.2.1 198.51.100.2 4711 443\r\n";
    // A ClientHello of 508 bytes, as far as its version.
    const HELLO: &[u8] = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    let _alone = quarter_alone();
    raise_descriptors();
    let origin = Origin::start();
    let (gateway, tls) = behind_proxies(&origin);
    let plain = gateway.address();
    let process = Process::of(gateway.id());
    let others = Others::start(&gateway);
    let (descriptors, memory) = (process.descriptors(), process.memory());
    // `One` connects from 127.0.0.9 where the remainder of eight is seven.
    let (direct, proxied) = (0, 7);
    let kinds = [
        (plain, direct, HEAD.to_vec()),
        (tls, direct, HELLO.to_vec()),
        (plain, proxied, PROXY[..20].to_vec()),
        (tls, proxied, [PROXY, HELLO].concat()),
        (plain, proxied, [PROXY, HEAD].concat()),
    ];
    let mut crowd: Vec<_> = (0..80)
        .flat_map(|_| &kinds)
        .map(|(to, from, first)| {
            let mut one = One::connect(*to, *from);
            assert_eq!(one.send(first), first.len());
            one
        })
        .collect();
    let mut most = memory;
    eventually("all are cut off", || {
        for one in &mut crowd {
            if one.ended.is_none() {
                one.send(b"1");
            }
        }
        most = most.max(process.memory());
        watch(&mut crowd, Duration::from_millis(200)) == 0
    });
    assert!(most < memory + 400 * 32 * KB, "{} KB", (most - memory) / KB);
    others.check();
    eventually("the connections are closed", || {
        process.descriptors() <= descriptors + MORE_DESCRIPTORS
    });
}
