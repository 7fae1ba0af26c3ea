//! Real programs that write the header.

use std::process::{Command, Stdio};

use super::*;
use crate::checklist::haproxy::Haproxy;
use crate::support::nginx::Nginx;
use crate::support::{SOON, eventually, now};

/// What curl writes; `arguments` end with the URL.
fn curl(arguments: &[&str]) -> Result<String, Option<i32>> {
    let mut curl = Command::new("curl");
    curl.args(["-s", "-k", "--max-time", "10"]).args(arguments);
    let output = curl.env("NO_PROXY", "*").stdin(Stdio::null()).output();
    let output = output.expect("curl");
    if output.status.success() {
        Ok(String::from_utf8(output.stdout).expect("text"))
    } else {
        Err(output.status.code())
    }
}

/// Asks through a proxy at `front` as the client 127.0.0.7, and checks that drip takes it for that.
fn ask_through(gateway: &Gateway, scheme: &str, front: SocketAddr) {
    let versions: &[&str] = match scheme {
        "https" => &["--http1.1", "--http2"],
        _ => &["--http1.1"],
    };
    for version in versions {
        let url = format!("{scheme}://{front}/");
        let told = curl(&["--interface", "127.0.0.7", version, &url, &url]);
        // Twice, over one connection.
        assert_eq!(told.as_deref(), Ok("127.0.0.7127.0.0.7"), "{version} {url}");
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
    let origin = telling();
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
    let origin = telling();
    let (gateway, _) = gateway(&origin, "\"127.0.0.1\"", "");
    let options = "send-proxy-v2 check inter 50ms rise 2\n    option httpchk GET /health";
    let front = Haproxy::relaying(gateway.address(), options);
    let port = gateway.address().port();
    eventually("haproxy has asked", || {
        has_key(&gateway, &format!("127.0.0.1 {port}"))
    });
    ask_through(&gateway, "http", front.address);
    let targets: Vec<String> = origin.arrivals().into_iter().map(|it| it.target).collect();
    assert!(targets.iter().any(|it| it == "/health"), "{targets:?}");
}

#[test]
fn nginxs_stream_module_names_its_clients() {
    let origin = telling();
    let (gateway, tls) = gateway(&origin, "\"127.0.0.1\"", "");
    let plain = Nginx::relaying(gateway.address(), "proxy_protocol on;");
    ask_through(&gateway, "http", plain.address);
    let encrypted = Nginx::relaying(tls, "proxy_protocol on;");
    ask_through(&gateway, "https", encrypted.address);
}

#[test]
fn curl_writes_a_header_before_plain_http_and_before_tls() {
    let origin = telling();
    let (gateway, tls) = gateway(&origin, "\"127.0.0.0/8\", \"unix:\"", "");
    let plain = format!("http://{}/", gateway.address());
    let encrypted = format!("https://{tls}/");
    let header = "--haproxy-protocol";
    for (url, version) in [
        (&plain, "--http1.1"),
        (&plain, "--http2-prior-knowledge"),
        (&encrypted, "--http1.1"),
        (&encrypted, "--http2"),
    ] {
        let told = curl(&[header, version, "--interface", "127.0.0.5", url]);
        assert_eq!(told.as_deref(), Ok("127.0.0.5"), "{version} {url}");
        // Closed without an answer, or in the handshake.
        let failed = curl(&[version, url]).expect_err("no header");
        assert!(matches!(failed, Some(16 | 35 | 52 | 55 | 56)), "{failed:?}");
    }
}

#[test]
fn a_proxy_that_names_its_client_is_no_slower_for_it() {
    let origin = telling();
    let (gateway, _) = gateway(&origin, "\"127.0.0.1\"", "");
    let front = Haproxy::relaying(gateway.address(), "send-proxy-v2");
    let began = now();
    for _ in 0..20 {
        let mut client = Raw::connect(front.address);
        client.send(REQUEST);
        assert_eq!(client.answer().status(), 200);
    }
    // A wait for bytes that are there already would take header_timeout, a minute.
    assert!(began.elapsed() < SOON);
}
