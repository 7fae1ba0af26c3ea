//! Controls without an incident: the headline stays calm, and no line is above INFO.

use std::any::Any;
use std::fs;
use std::io::{Read, Write};
use std::thread;
use std::time::Duration;

use super::clients::{crowd, fetch, get, slow_reader, slow_upload, steady};
use super::driver::stays_quiet;
use super::servers::{Server, app, limited};
use crate::support::frames::{self, Frames, head};
use crate::support::night::day_or_night;
use crate::support::{Exchange, FrameOrigin, Gateway, MS, Origin, connect_from, side_by_side};

/// Time longer than an origin may stay silent before it is reported. By night two long polls.
fn long() -> Duration {
    Duration::from_secs(day_or_night(9, 30))
}

/// Interval of ten requests per second.
const QUICK: Duration = Duration::from_millis(100);

/// Starts an origin that answers `/N` after N seconds, and anything else in 20 ms.
fn in_seconds() -> Origin {
    Origin::answering(|exchange| {
        let seconds = exchange.target().trim_start_matches('/').parse();
        thread::sleep(seconds.map_or(20 * MS, Duration::from_secs));
        exchange.reply(b"ok")
    })
}

/// Sends long polls of 20 s, one after another.
fn polls(gateway: &Gateway) {
    for _ in 0..200 {
        let to = gateway.address();
        thread::spawn(move || while fetch(to, &get("/20")).is_ok() {});
    }
}

#[test]
fn long_polls_alone_and_beside_quick_requests_are_no_news() {
    let origin = in_seconds();
    let file = app(&[origin.address], "", "");
    let (beside, alone) = (Gateway::start(&file), Gateway::start(&file));
    let _quick = steady(&beside, QUICK, |_| get("/"));
    polls(&beside);
    polls(&alone);
    side_by_side([&beside, &alone], |it| stays_quiet(it, long()));
}

/// Starts a gateway before an origin with streams, and one over HTTP/2 that never answers a call.
fn with_streams() -> (Origin, FrameOrigin, Gateway) {
    let origin = Origin::answering(|exchange: &mut Exchange| match exchange.target() {
        "/socket" => {
            let switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\
                            Upgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n";
            exchange.send(switched.as_bytes())?;
            exchange.stream().read_to_end(&mut Vec::new())?;
            Exchange::close()
        }
        "/events" => {
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")?;
            loop {
                exchange.send(b"data: x\n\n")?;
                thread::sleep(Duration::from_secs(1));
            }
        }
        "/file" => exchange.reply(&vec![b'x'; 8 << 20]),
        _ => {
            thread::sleep(20 * MS);
            exchange.reply(b"ok")
        }
    });
    let calls = FrameOrigin::start();
    for _ in 0..STREAMS {
        calls.next(|_, _| Ok(()));
    }
    let route = format!(
        "[origins.calls]\nservers = [\"h2c://{}\"]\n{PATIENT}\n[[routes]]\npath = \"/pkg.\"\norigin = \"calls\"\n",
        calls.address
    );
    let gateway = Gateway::start(&app(&[origin.address], PATIENT, &route));
    (origin, calls, gateway)
}

const STREAMS: u8 = 20;
/// A busy machine accepts many connections slowly.
const PATIENT: &str = "connect_timeout = \"20s\"";

/// Opens twenty silent streams of each kind: `WebSockets`, events, downloads and calls.
///
/// Dropping the result closes them.
fn streams(gateway: &Gateway) -> Vec<Box<dyn Any>> {
    let mut open: Vec<Box<dyn Any>> = Vec::new();
    for nth in 0..STREAMS {
        let from = [127, 0, 3, nth + 1];
        open.push(Box::new(slow_reader(gateway, from, "/events")));
        open.push(Box::new(slow_reader(gateway, from, "/file")));
        let mut socket = connect_from(from.into(), gateway.address(), None).expect("a connection");
        let upgrade = "GET /socket HTTP/1.1\r\nHost: test\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
                       Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
        socket
            .write_all(upgrade.as_bytes())
            .expect("the gateway reads");
        open.push(Box::new(socket));
        let fields = frames::call("/pkg.Service/Method");
        let mut client = Frames::connect(gateway.address());
        client.send(head(1, 0, &fields)).expect("the gateway reads");
        open.push(Box::new(client));
    }
    open
}

#[test]
fn streams_alone_and_beside_quick_requests_are_no_news() {
    let (_origin, _calls, beside) = with_streams();
    let (_other, _other_calls, alone) = with_streams();
    let _quick = steady(&beside, QUICK, |_| get("/"));
    let _open = [streams(&beside), streams(&alone)];
    side_by_side([&beside, &alone], |it| stays_quiet(it, long()));
}

#[test]
fn a_few_slow_requests_are_no_news() {
    let origin = in_seconds();
    let gateway = Gateway::start(&app(&[origin.address], "", ""));
    let _quiet = steady(&gateway, Duration::from_secs(1), |_| get("/"));
    // One after the other, then three reports at once, none longer than one before.
    let (one, other, three) = day_or_night(("/1", "/4", "/3"), ("/8", "/12", "/10"));
    thread::scope(|scope| {
        scope.spawn(|| stays_quiet(&gateway, long()));
        for target in [one, other] {
            fetch(gateway.address(), &get(target)).expect("an answer");
        }
        crowd(&gateway, 3, |_| get(three));
    });
}

#[test]
fn a_start_into_load_is_no_news() {
    let origin = Origin::answering(|exchange| {
        thread::sleep(800 * MS);
        exchange.reply(b"ok")
    });
    let gateway = Gateway::start(&app(&[origin.address], "", ""));
    crowd(&gateway, 300, |_| get("/"));
    let _steady = steady(&gateway, QUICK, |_| get("/"));
    stays_quiet(&gateway, long());
}

#[test]
fn a_slow_client_beside_free_permits_is_no_news() {
    let server = Server::start();
    let gate = "max_in_flight = 20";
    let gateway = Gateway::start(&app(&[server.address()], gate, ""));
    let _quick = steady(&gateway, QUICK, |_| get("/"));
    let _slow = slow_upload(&gateway, [127, 0, 0, 9], "/");
    stays_quiet(&gateway, long());
}

#[test]
fn a_reload_that_takes_nothing_away_is_no_news() {
    let server = Server::start();
    let file = |burst: u8| {
        let zone = "key = \"$arg_key\"\nrate = \"50r/s\"";
        let limit = format!("burst = {burst}");
        let plan = "[zones.per_key.plans.gold]\nfile = \"gold.txt\"\nrate = \"100r/s\"\n";
        limited(server.address(), zone, "/", &limit) + plan
    };
    let gateway = Gateway::start_beside(&[("gold.txt", "alice\n")], &file(20));
    let _quick = steady(&gateway, QUICK, |nth| {
        get(format!("/?key=user{}", nth % 20))
    });
    thread::scope(|scope| {
        scope.spawn(|| stays_quiet(&gateway, long()));
        thread::sleep(Duration::from_secs(2));
        gateway.site.write(&file(40));
        gateway.wait_for_line("burst 20 -> 40");
        let gold = gateway.site.folder().join("gold.txt");
        fs::write(gold, "alice\nbob\ncarol\n").expect("a file");
        gateway.wait_for_line("gold.txt: 2 keys more");
    });
}

/// A small site stays calm for an hour.
///
/// One visitor per second requests a handful of pages, and the gate is never full.
#[test]
#[ignore = "an hour: tests/run.sh long"]
fn a_quiet_gateway_reports_nothing_for_an_hour() {
    let server = Server::start();
    let rest = "limits = [{ zone = \"per_key\", burst = 10 }]\n\
                [zones.per_key]\nkey = \"$arg_key\"\nrate = \"5r/s\"";
    let file = app(&[server.address()], "max_in_flight = 20", rest);
    let visited = Gateway::start(&file);
    let idle = Gateway::start(&file);
    let _visitors = steady(&visited, Duration::from_secs(1), |nth| {
        get(format!("/{}?key=visitor{}", nth % 7, nth / 5))
    });
    let hour = Duration::from_secs(3600);
    side_by_side([&visited, &idle], |it| stays_quiet(it, hour));
}
