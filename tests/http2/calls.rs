//! Requests that say that they are calls of gRPC, before servers over either version of HTTP.

use std::thread;
use std::time::Duration;

use crate::support::frames::{DATA, END_STREAM, Frames, Outcome, frame, head, ok};
use crate::support::{FrameOrigin, Gateway, Origin, eventually, fetch};

/// How long a body may stand still, unless it is that of a call.
const BODY_TIMEOUT: Duration = Duration::from_secs(1);

fn gateway(server: &str) -> Gateway {
    Gateway::start(&format!(
        "workers = 1\nbody_timeout = \"1s\"\nmin_body_rate = \"8KB/1s\"\n\
         [origins.app]\nservers = [\"{server}\"]\nmax_in_flight = 1\nqueue_timeout = \"100ms\"\n\
         body_timeout = \"1s\"\nresponse_timeout = \"1m\"\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n"
    ))
}

/// A client that has sent the head of a call, and nothing of its messages.
fn silent_call(gateway: &Gateway) -> Frames {
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "test"),
        (":path", "/pkg.Service/Method"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    let mut client = Frames::connect(gateway.address());
    client.send(head(1, 0, &fields)).expect("the gateway reads");
    client
}

#[test]
fn a_call_pauses_only_before_a_server_over_http_2() {
    let origin = Origin::answering(|exchange| {
        exchange.body()?;
        exchange.reply(b"ok")
    });
    let before_http1 = gateway(&format!("http://{}", origin.address));
    let _silent = silent_call(&before_http1);
    origin.wait_for(1);
    // Its place at the origin is free when `body_timeout` is over.
    eventually("others are served", || {
        fetch(before_http1.address(), "/").status == 200
    });

    let origin = FrameOrigin::start();
    let before_http2 = gateway(&format!("h2c://{}", origin.address));
    origin.next(|to, stream| {
        while !to.next()?.ends_stream() {}
        to.send(ok(stream))
    });
    let mut client = silent_call(&before_http2);
    eventually("it is at the origin", || origin.requests() == 1);
    thread::sleep(BODY_TIMEOUT * 3);
    client
        .send(frame(DATA, END_STREAM, 1, b"\0\0\0\0\0"))
        .expect("the gateway reads");
    assert!(matches!(client.outcome(1), Outcome::Status(200)));
}
