//! Tests of spans of sampled requests, as a collector receives them.

mod collector;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::scripted::Hold;
use crate::support::{
    Client, DeafOrigin, Exchange, Gateway, MS, Origin, SOON, assert_contains, eventually,
    free_address, one_zone, side_by_side,
};
use collector::{Collector, Span};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

/// Returns a file with a zone of 5r/s with a burst of 1, and a collector.
fn file(origin: &Origin, collector: SocketAddr) -> String {
    one_zone(origin, "5r/s", "burst = 1") + &format!("[log]\notlp = \"http://{collector}\"\n")
}

fn traceparent(flags: &str) -> String {
    format!("00-{TRACE}-{SPAN}-{flags}")
}

fn send(client: &mut Client, target: &str, flags: &str) {
    let parent = traceparent(flags);
    let fields = format!("Host: a\r\ntraceparent: {parent}\r\ntracestate: rojo=1");
    client.send(format!("GET {target} HTTP/1.1\r\n{fields}\r\n\r\n"));
}

fn ask(client: &mut Client, target: &str, flags: &str) -> u16 {
    send(client, target, flags);
    client.answer().status
}

/// Trace fields of each request at an origin, in order.
type Traces = Arc<Mutex<Vec<[String; 2]>>>;

fn tracing_origin() -> (Origin, Traces) {
    let seen = Traces::default();
    let to_see = Arc::clone(&seen);
    let origin = Origin::answering(move |exchange| {
        let fields = ["traceparent", "tracestate"];
        let fields = fields.map(|name| exchange.field(name).unwrap_or_default().to_owned());
        to_see.lock().expect("no panic").push(fields);
        exchange.reply(b"ok")
    });
    (origin, seen)
}

fn named<'s>(spans: &'s [Span], name: &str) -> Vec<&'s Span> {
    spans.iter().filter(|span| span.name == name).collect()
}

#[test]
fn a_sampled_request_has_its_spans_under_the_one_that_its_client_named() {
    let (origin, seen) = tracing_origin();
    let collector = Collector::start();
    let named_edge = format!("name = \"edge-1\"\n{}", file(&origin, collector.address()));
    let mut gateway = Gateway::start(&named_edge);
    let mut client = gateway.connect();
    assert_eq!(ask(&mut client, "/?key=a", "01"), 200, "does not wait");
    assert_eq!(ask(&mut client, "/?key=a", "01"), 200, "waits");
    let spans = collector.wait_for(4);
    let last = ask(&mut client, "/?key=b", "01");
    assert_eq!(last, 200, "just before the end");
    gateway.signal(Signal::TERM);
    assert_eq!(gateway.wait(2 * SOON).code(), Some(0));
    assert_eq!(collector.spans().len(), 6, "the last are sent at the end");

    assert_eq!(spans.len(), 4, "{spans:#?}");
    for span in &spans {
        assert_eq!((&*span.trace, &*span.parent), (TRACE, SPAN));
        assert_eq!(span.error, None, "{span:#?}");
        for (name, value) in [
            ("service.name", "drip"),
            ("service.instance.id", "edge-1"),
            ("http.request.method", "GET"),
            ("http.route", "/"),
        ] {
            assert_eq!(span.attribute(name), Some(value), "{span:#?}");
        }
    }
    let (queued, asked) = (named(&spans, "queued"), named(&spans, "origin"));
    assert_eq!((queued.len(), asked.len()), (2, 2), "{spans:#?}");
    let seen = seen.lock().expect("no panic").clone();
    for (index, (queued, asked)) in queued.into_iter().zip(asked).enumerate() {
        let parent = format!("00-{TRACE}-{}-01", asked.id);
        assert_eq!(seen[index], [parent, "rojo=1".to_owned()]);
        assert_eq!((queued.kind, asked.kind), (1, 3));
        assert_ne!(queued.id, asked.id);
        assert!(queued.begin <= queued.end && queued.end == asked.begin);
        assert!(asked.begin < asked.end);
        let waited = Duration::from_nanos(queued.end - queued.begin);
        let (status, has_waited) = [("passed", false), ("delayed", true)][index];
        assert_eq!(queued.attribute("drip.zone"), Some("z"));
        assert_eq!(queued.attribute("drip.limit_status"), Some(status));
        assert_eq!(waited > 100 * MS, has_waited, "{waited:?}");
        assert_eq!(asked.attribute("http.response.status_code"), Some("200"));
        assert_eq!(asked.attribute("drip.origin"), Some("app"));
        let server = format!("http://{}", origin.address);
        assert_eq!(asked.attribute("drip.server"), Some(&*server));
    }
}

#[test]
fn a_request_that_is_not_sampled_has_no_spans_and_keeps_its_traceparent() {
    let unchanged = |flags: &str| [traceparent(flags), "rojo=1".to_owned()];
    let (origin, seen) = tracing_origin();
    let collector = Collector::start();
    let gateway = Gateway::start(&file(&origin, collector.address()));
    let mut client = gateway.connect();
    assert_eq!(ask(&mut client, "/?key=a", "00"), 200);
    assert_eq!(ask(&mut client, "/?key=b", "0x"), 200, "not valid");
    assert_eq!(gateway.fetch("/?key=c").status, 200, "no trace");
    // Spans are sent in order: those of the requests above would arrive with these.
    assert_eq!(ask(&mut client, "/?key=d", "01"), 200);
    let spans = collector.wait_for(2);
    assert_eq!(spans.len(), 2, "{spans:#?}");
    // Without a collector nothing changes, either.
    let without = Gateway::start(&one_zone(&origin, "5r/s", "burst = 5"));
    let mut client = Client::connect(without.address());
    assert_eq!(ask(&mut client, "/?key=a", "01"), 200);
    assert!(!without.metrics().0.contains("drip_spans"));
    let seen = seen.lock().expect("no panic").clone();
    assert_eq!(seen[..2], [unchanged("00"), unchanged("0x")]);
    assert_eq!(seen[2], ["", ""]);
    assert_ne!(seen[3], unchanged("01"));
    assert_eq!(seen[4], unchanged("01"));
}

#[test]
fn a_request_that_goes_no_further_is_one_span_that_says_why() {
    let origin = Origin::start();
    let collector = Collector::start();
    let slow = file(&origin, collector.address()).replace("5r/s", "1r/m");
    let gateway = Gateway::start(&slow.replace("path = \"/\"", "path = \"/x\""));
    let mut client = gateway.connect();
    assert_eq!(ask(&mut client, "/other", "01"), 404);
    assert_eq!(ask(&mut client, "/x?key=a", "01"), 200);
    let mut waiting = gateway.connect();
    send(&mut waiting, "/x?key=a", "01");
    gateway.wait_for_depth(1);
    assert_eq!(ask(&mut client, "/x?key=a", "01"), 429);
    drop(waiting);
    let spans = collector.wait_for(3);
    let queued = named(&spans, "queued");
    assert_eq!((queued.len(), spans.len()), (4, 5), "{spans:#?}");
    let of_status = |status: &str| {
        let code = "http.response.status_code";
        let mut of_status = queued
            .iter()
            .filter(|it| it.attribute(code) == Some(status));
        let one = of_status.next().unwrap_or_else(|| panic!("{queued:#?}"));
        assert!(of_status.next().is_none(), "{queued:#?}");
        one
    };
    let unknown = of_status("404");
    assert_eq!(unknown.error.as_deref(), Some(""));
    assert_eq!(unknown.attribute("http.route"), None);
    let rejected = of_status("429");
    assert_eq!(rejected.error.as_deref(), Some("burst"));
    assert_eq!(rejected.attribute("drip.reason"), Some("burst"));
    assert_eq!(rejected.attribute("drip.limit_status"), Some("rejected"));
    assert_eq!(rejected.attribute("drip.zone"), Some("z"));
    let left = of_status("499");
    assert_eq!(left.error, None);
    assert_eq!(left.attribute("drip.limit_status"), Some("cancelled"));
}

#[test]
fn the_wait_at_the_gate_is_in_the_queued_span() {
    let hold = Hold::default();
    let of_origin = hold.clone();
    let origin = Origin::answering(move |exchange| {
        of_origin.wait();
        exchange.reply(b"ok")
    });
    let collector = Collector::start();
    let gate = "max_in_flight = 1\nqueue_timeout = \"300ms\"\n\n[zones.z]";
    let gateway =
        Gateway::start(&file(&origin, collector.address()).replacen("[zones.z]", gate, 1));
    let mut first = gateway.connect();
    let parent = traceparent("01");
    first.send(format!(
        "BREW / HTTP/1.1\r\nHost: a\r\ntraceparent: {parent}\r\n\r\n"
    ));
    origin.wait_for(1);
    let mut second = gateway.connect();
    assert_eq!(ask(&mut second, "/?key=b", "01"), 503, "waits in vain");
    hold.open();
    assert_eq!(first.answer().status, 200, "passes the gate at once");
    let spans = collector.wait_for(3);
    let mut queued = named(&spans, "queued");
    queued.sort_by_key(|span| span.begin);
    assert_eq!(queued[0].attribute("http.request.method"), Some("_OTHER"));
    assert_eq!(queued[0].error, None);
    assert_eq!(queued[1].attribute("drip.reason"), Some("timeout"));
    assert_eq!(queued[1].error.as_deref(), Some("timeout"));
    let status = queued[1].attribute("drip.limit_status");
    assert_eq!(status, Some("rejected_elsewhere"));
    let waited = Duration::from_nanos(queued[1].end - queued[1].begin);
    assert!(waited >= Duration::from_millis(300), "{waited:?}");
    assert_eq!(named(&spans, "origin").len(), 1, "{spans:#?}");
}

#[test]
fn an_origin_that_fails_is_an_error_in_its_span() {
    let origin = Origin::answering(|exchange| match exchange.target() {
        "/500" => exchange.send(b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"),
        "/404" => exchange.send(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"),
        _ => Exchange::close(),
    });
    let collector = Collector::start();
    let gateway = Gateway::start(&file(&origin, collector.address()));
    for (nth, target, status, error, code) in [
        (1, "/404", 404, None, Some("404")),
        (2, "/500", 500, Some(""), Some("500")),
        (3, "/closes", 502, Some("no response"), None),
    ] {
        let mut client = gateway.connect();
        assert_eq!(ask(&mut client, target, "01"), status);
        let spans = collector.wait_for(2 * nth);
        let asked = named(&spans, "origin")[nth - 1];
        assert_eq!(asked.error.as_deref(), error, "{target}");
        assert_eq!(asked.attribute("http.response.status_code"), code);
        assert_eq!(named(&spans, "queued")[nth - 1].error, None, "{target}");
    }
}

/// Waits until the collector's time limit of 3 seconds has passed.
fn wait_until_late(gateway: &Gateway) {
    let line = gateway.wait_for_line("did not answer in 3s");
    assert_contains!(line, " WARN the collector takes no spans");
}

#[test]
fn a_collector_that_answers_byte_by_byte_is_given_up() {
    let origin = Origin::start();
    let collector = Origin::answering(|exchange| {
        exchange.body()?;
        exchange.send(b"HTTP/1.1 200 OK\r\nx: ")?;
        loop {
            exchange.send(b"y")?;
            thread::sleep(Duration::from_millis(50));
        }
    });
    let gateway = Gateway::start(&file(&origin, collector.address));
    let mut client = gateway.connect();
    assert_eq!(ask(&mut client, "/?key=a", "01"), 200);
    wait_until_late(&gateway);
    let dropped = gateway.count("drip_spans_dropped_total", &[]);
    assert_eq!(dropped, 2);
}

#[test]
fn a_collector_that_does_not_answer_costs_spans_and_no_request() {
    const REQUESTS: usize = 3000;
    const CLIENTS: usize = 4;
    let origin = Origin::start();
    let collector = DeafOrigin::start();
    let fast = file(&origin, collector.address).replace("5r/s", "100000r/s");
    let mut gateway = Gateway::start(&fast.replace("burst = 1", "burst = 100"));
    let dropped = || gateway.count("drip_spans_dropped_total", &[]);
    assert_eq!(dropped(), 0);
    side_by_side(0..CLIENTS, |_| {
        let mut client = gateway.connect();
        for _ in 0..REQUESTS / CLIENTS {
            assert_eq!(ask(&mut client, "/?key=a", "01"), 200);
        }
    });
    // Of 6000 spans 4096 may wait, and 512 are being sent.
    eventually("spans are dropped", || dropped() >= 6000 - 4096 - 512);
    wait_until_late(&gateway);
    assert!(dropped() < 6000, "spans still wait at the end");
    gateway.signal(Signal::TERM);
    assert_eq!(gateway.wait(2 * SOON).code(), Some(0));
    let log = gateway.whole_log();
    assert_contains!(log, "spans were not sent in time");
}

#[test]
fn a_collector_that_is_back_gets_spans_again() {
    let origin = Origin::start();
    let address = free_address();
    let gateway = Gateway::start(&file(&origin, address));
    let mut client = gateway.connect();
    assert_eq!(ask(&mut client, "/?key=a", "01"), 200);
    let line = gateway.wait_for_line("the collector takes no spans");
    assert_contains!(line, "refused");
    let dropped = || gateway.count("drip_spans_dropped_total", &[]);
    assert_eq!(dropped(), 2);
    let collector = Collector::at(&address.to_string());
    assert_eq!(ask(&mut client, "/?key=b", "01"), 200);
    assert_eq!(collector.wait_for(2).len(), 2);
    let line = gateway.wait_for_line("the collector takes spans again");
    assert_contains!(line, "lost=2");
    assert_eq!(dropped(), 2);
}
