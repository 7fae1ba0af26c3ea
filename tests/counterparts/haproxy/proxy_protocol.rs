//! Tests of real proxies that write the PROXY protocol header.

use std::fs;
use std::net::SocketAddr;

use crate::programs::curl::curl;
use crate::programs::haproxy::Haproxy;
use crate::programs::nginx::Nginx;
use crate::support::proxy_protocol::*;
use crate::support::{Gateway, eventually};

/// Sends a request through a proxy as the client 127.0.0.7, and checks that drip sees that client.
fn ask_through(gateway: &Gateway, scheme: &str, front: SocketAddr) {
    let versions: &[&str] = match scheme {
        "https" => &["--http1.1", "--http2"],
        _ => &["--http1.1"],
    };
    for version in versions {
        let url = format!("{scheme}://{front}/");
        let received = curl(&["--interface", "127.0.0.7", version, &url, &url]);
        // Twice, over one connection.
        let expected = Ok("127.0.0.7127.0.0.7");
        assert_eq!(received.as_deref(), expected, "{version} {url}");
    }
    let key = format!("127.0.0.7 {}", front.port());
    assert!(has_key(gateway, &key), "{key}: the port is the proxy's");
    eventually("the access log names the client", || {
        let log = fs::read_to_string(gateway.site.folder().join("access.log"));
        log.is_ok_and(|log| log.lines().any(|line| line.starts_with("127.0.0.7 ")))
    });
}

#[test]
fn haproxy_names_its_clients_with_send_proxy_of_either_version() {
    let origin = echo_origin();
    let (gateway, tls) = gateway(&origin, "\"127.0.0.1\"", "");
    for options in [
        "send-proxy",
        "send-proxy-v2",
        "send-proxy-v2 proxy-v2-options crc32c,unique-id,authority,ssl",
    ] {
        let plain = Haproxy::relaying(gateway.address(), options);
        ask_through(&gateway, "http", plain.address);
        let encrypted = Haproxy::relaying(tls, options);
        ask_through(&gateway, "https", encrypted.address);
    }
}

#[test]
fn haproxys_own_checks_have_its_own_address() {
    let origin = echo_origin();
    let (gateway, _) = gateway(&origin, "\"127.0.0.1\"", "");
    // On a busy machine a check takes longer than 50 ms, which is no failure here.
    let options = "send-proxy-v2 check inter 50ms rise 2 fall 1000\n    option httpchk GET /health";
    let front = Haproxy::relaying(gateway.address(), options);
    let port = gateway.address().port();
    eventually("haproxy has sent a request", || {
        has_key(&gateway, &format!("127.0.0.1 {port}"))
    });
    ask_through(&gateway, "http", front.address);
    let targets: Vec<String> = origin.arrivals().into_iter().map(|it| it.target).collect();
    assert!(targets.iter().any(|it| it == "/health"), "{targets:?}");
}

#[test]
fn nginxs_stream_module_names_its_clients() {
    let origin = echo_origin();
    let (gateway, tls) = gateway(&origin, "\"127.0.0.1\"", "");
    let plain = Nginx::relaying(gateway.address(), "proxy_protocol on;");
    ask_through(&gateway, "http", plain.address);
    let encrypted = Nginx::relaying(tls, "proxy_protocol on;");
    ask_through(&gateway, "https", encrypted.address);
}
