//! The fields of a trace (W3C Trace Context) on their way through the gateway over HTTP/1.

use std::sync::{Arc, Mutex};

use crate::support::{Client, Gateway, Origin, one_zone};

/// The example of the recommendation, and a `tracestate` in two lines, as it may be sent.
const REQUEST: [&str; 3] = [
    "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "tracestate: rojo=00f067aa0ba902b7",
    "tracestate: congo=t61rcWkgMzE",
];

const ANSWER: [&str; 2] = [
    "traceresponse: 00-4bf92f3577b34da6a3ce929d0e0e4736-b7ad6b7169203331-01",
    "tracestate: origin=1",
];

#[test]
fn the_fields_of_a_trace_pass_unchanged_both_ways() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let to_see = Arc::clone(&seen);
    let origin = Origin::answering(move |exchange| {
        let fields = exchange.head.fields.iter();
        let fields = fields.map(|(name, value)| format!("{name}: {value}"));
        let is_of_trace = |line: &String| line.starts_with("trace");
        *to_see.lock().expect("no panic") = fields.filter(is_of_trace).collect();
        let fields = ANSWER.join("\r\n");
        exchange
            .send(format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{fields}\r\n\r\n").as_bytes())
    });
    let gateway = Gateway::start(&one_zone(&origin, "1000r/s", "burst = 9"));
    let mut client = Client::connect(gateway.address());
    let fields = REQUEST.join("\r\n");
    client.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n").as_bytes());
    let answer = client.answer();
    assert_eq!(answer.status, 200);
    assert_eq!(*seen.lock().expect("no panic"), REQUEST);
    for line in ANSWER {
        let (name, value) = line.split_once(": ").expect("a field");
        assert_eq!(answer.field(name), Some(value));
    }
}
