//! Tests of the checklist with nginx and haproxy beside drip, which proves the tests.

#[path = "../../checklist/mod.rs"]
mod checklist;
mod hold;
mod killed;
mod proxy_protocol;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread;

use crate::haproxy::checklist::bed::LAST;
use crate::haproxy::checklist::smuggling::corpus;
use crate::programs::haproxy::Haproxy;
use crate::programs::nginx::Nginx;
use crate::support::Raw;

/// Cases that nginx 1.22 and haproxy 2.6 both accept or answer early.
///
/// At least one of them refuses each of the other cases, which proves that the test itself is
/// right.
const NEITHER: &str = "chunk-data-ends-in-lf chunk-ext-term chunk-ext-term-last chunk-extension-control chunk-extension-del \
    chunk-extension-null chunk-extension-on-every-one chunk-extension-without-end chunk-last-ends-in-cr-lf-lf \
    chunk-last-ends-in-lf chunk-many-zeros chunk-size-ends-in-lf chunk-term-ext-last chunk-trailer-bare-lf \
    chunk-trailer-folded chunk-trailer-null chunk-trailer-space-before-colon cl-behind-bare-lf expect-two \
    expect-word-before head-bare-lf head-bare-lf-at-end head-lf-first head-value-control line-http-1.2 \
    line-two-spaces";

/// Starts an origin that answers 200 to any head, and then reads everything.
fn says_ok() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                let (mut came, mut byte) = (Vec::new(), [0]);
                while !came.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).is_ok() {
                    came.extend_from_slice(&byte);
                }
                // The proxy may have closed meanwhile.
                let _sent = stream.write_all(LAST.as_bytes());
                let _rest = stream.read_to_end(&mut came);
            });
        }
    });
    address
}

/// Returns whether a proxy refuses the bytes, with an origin that answers 200 to everything.
fn refuses(proxy: SocketAddr, bytes: &[u8]) -> bool {
    let mut client = Raw::connect(proxy);
    client.send(bytes);
    // A proxy that sends nothing and ends the connection refuses it too.
    !client.try_line().is_ok_and(|line| line.contains(" 200 "))
}

#[test]
fn nginx_or_haproxy_refuse_the_most_of_it_too_and_pass_what_is_fine() {
    const TIMEOUTS: &str = "client_header_timeout 500ms; client_body_timeout 500ms;";
    let origin = says_ok();
    let nginx = Nginx::before(origin, TIMEOUTS, &[("/", "")]);
    let haproxy = Haproxy::before(origin, "    timeout http-request 500ms");
    for (name, fine, bytes) in corpus() {
        let refused = [nginx.address, haproxy.address].map(|proxy| refuses(proxy, &bytes));
        if fine {
            assert!(refused.contains(&false), "both refuse {name}");
        } else if !NEITHER.split(' ').any(|it| it == name) {
            assert!(refused.contains(&true), "both pass {name}");
        }
    }
}
