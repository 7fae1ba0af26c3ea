//! Tests with curl, which can write the PROXY protocol header itself.

use crate::programs::curl::curl;
use crate::support::proxy_protocol::{echo_origin, gateway};

#[test]
fn curl_writes_a_header_before_plain_http_and_before_tls() {
    let origin = echo_origin();
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
        let received = curl(&[header, version, "--interface", "127.0.0.5", url]);
        assert_eq!(received.as_deref(), Ok("127.0.0.5"), "{version} {url}");
        // Closed without a response, or in the handshake.
        let failed = curl(&[version, url]).expect_err("no header");
        assert!(matches!(failed, Some(16 | 35 | 52 | 55 | 56)), "{failed:?}");
    }
}
