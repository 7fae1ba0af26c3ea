//! Tests with curl of an address that redirects to TLS.

#[path = "../../gateway/listen/files.rs"]
mod files;

use files::redirecting;

use crate::programs::curl::curl;
use crate::support::{Exchange, Origin};

#[test]
fn curl_follows_the_redirect_and_keeps_method_and_body() {
    let origin = Origin::answering(|exchange: &mut Exchange| {
        let received = format!("{} ", exchange.head.first_line);
        let body = exchange.body()?;
        exchange.reply(&[received.as_bytes(), &body].concat())
    });
    let (_gateway, plain, tls) = redirecting(&origin, "https");
    let resolve = [plain, tls].map(|to| format!("a.test:{}:127.0.0.1", to.port()));
    let url = format!("http://a.test:{}/a?b", plain.port());
    let mut arguments = vec!["-L", "-d", "the body", &url];
    for name in &resolve {
        arguments.extend(["--resolve", name]);
    }
    let received = curl(&arguments).expect("an answer");
    assert_eq!(received, "POST /a?b HTTP/1.1 the body");

    // Over HTTP/2 without TLS, too.
    let url = format!("http://{plain}/a?b");
    let written = ["-w", "%{http_code} %{redirect_url}", "-o", "/dev/null"];
    let received = curl(&[&["--http2-prior-knowledge"], &written[..], &[url.as_str()]].concat());
    let expected = format!("308 https://127.0.0.1:{}/a?b", tls.port());
    assert_eq!(received, Ok(expected));
}
