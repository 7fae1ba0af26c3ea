//! Tests of gRPC calls to an origin server over HTTP/1.

use crate::support::frames::{self, Frames, head};
use crate::support::{Gateway, Origin, eventually, fetch};

fn gateway(server: &str) -> Gateway {
    Gateway::start(&format!(
        "workers = 1\nbody_timeout = \"1s\"\nmin_body_rate = \"8KB/1s\"\n\
         [origins.app]\nservers = [\"{server}\"]\nmax_in_flight = 1\nqueue_timeout = \"100ms\"\n\
         body_timeout = \"1s\"\nresponse_timeout = \"1m\"\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n"
    ))
}

/// Returns a client that has sent the head of a call, and none of its messages.
fn silent_call(gateway: &Gateway) -> Frames {
    let fields = frames::call("/pkg.Service/Method");
    let mut client = Frames::connect(gateway.address());
    client.send(head(1, 0, &fields)).expect("the gateway reads");
    client
}

/// A call may not pause before a server over HTTP/1.
///
/// Before a server over HTTP/2 it may: `a_call_may_be_silent_for_longer_than_a_body` in
/// `tests/counterparts/languages`.
#[test]
fn a_call_does_not_pause_before_a_server_over_http_1() {
    let origin = Origin::answering(|exchange| {
        exchange.body()?;
        exchange.reply(b"ok")
    });
    let before_http1 = gateway(&format!("http://{}", origin.address));
    let _silent = silent_call(&before_http1);
    origin.wait_for(1);
    // Its permit at the origin is free when `body_timeout` is over.
    eventually("others are served", || {
        fetch(before_http1.address(), "/").status == 200
    });
}
