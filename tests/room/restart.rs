//! Tests of a restart: positions, tickets and sessions outlive the process.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;

use rustix::process::Signal;

use super::{Chain, JSON, Visitor, cookies, kill, position, rooms_file, shop, stop};
use crate::support::{Client, HoldingOrigin, MS, Origin, assert_contains, eventually};

/// Fails if other users may read the file of the rooms, which has their secrets.
fn check_mode(site: &Chain) {
    let file = fs::metadata(rooms_file(site)).expect("a file");
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
}

#[test]
fn after_a_stop_positions_are_kept_and_numbers_continue() {
    let origin = Origin::start();
    let site = Chain::new(false, true, &shop(origin.address, "sessions = 1"));
    let at = site.address;
    let gateway = site.start();
    let mut inside = Visitor::walk_in(at);
    let mut waiting: Vec<_> = (0..3).map(|_| Visitor::draw(at)).collect();
    check_mode(&site);
    stop(gateway);
    let gateway = site.start();
    let line =
        gateway.wait_for_line("the waiting room continues from the state of the previous process");
    assert_contains!(line, "origin=\"shop\" sessions=1 waiting=3");
    for (visitor, line_position) in waiting.iter_mut().zip(1..) {
        let number = visitor.number();
        assert_eq!(position(&visitor.ask(at, "/", JSON)), Some(line_position));
        assert_eq!(visitor.number(), number);
    }
    assert!(inside.is_inside(at));
    assert_eq!(Visitor::draw(at).number(), 5);
    check_mode(&site);
}

#[test]
fn who_entered_just_before_a_kill_is_inside() {
    let origin = Origin::start();
    let room = "sessions = 1\nidle = \"2s\"\nclaim = \"30s\"";
    let site = Chain::new(false, true, &shop(origin.address, room));
    let at = site.address;
    let gateway = site.start();
    Visitor::walk_in(at);
    let mut second = Visitor::draw(at);
    super::wait_until_called(&gateway);
    // The file has the call, but not the session that begins now.
    thread::sleep(1500 * MS);
    assert_eq!(second.ask(at, "/", "").status, 200);
    kill(gateway);
    let _gateway = site.start();
    assert!(second.is_inside(at));
    let mut third = Visitor::default();
    let status = third.ask(at, "/", "").status;
    assert_ne!(status, 200, "the only session is taken");
    assert!(third.number() > second.number(), "a number was given twice");
}

#[test]
fn nobody_gets_a_number_or_a_session_that_the_next_process_does_not_know() {
    let origin = HoldingOrigin::of("/held");
    let room = "sessions = 2\nidle = \"1s\"\nclaim = \"30s\"";
    let site = Chain::new(false, true, &shop(origin.origin.address, room));
    let at = site.address;
    let mut gateway = site.start();
    // Keeps the process from ending.
    let held = Client::ask(at, "/held");
    eventually("it is held", || origin.targets() == ["/held"]);
    let inside = Visitor::walk_in(at);
    let mut called = Visitor::draw(at);
    super::wait_until_called(&gateway);
    let late = |fields: String| {
        let mut client = Client::connect(at);
        client.send(format!("GET / HTTP/1.1\r\n{fields}").as_bytes());
        client
    };
    let session = inside.session.expect("a session");
    let ticket = called.ticket.clone().expect("a ticket");
    let mut clients = [
        late(String::new()),
        late(format!("Drip-Ticket: {ticket}\r\n")),
        late(format!("Drip-Session: {session}\r\n")),
    ];
    // The workers have read the requests.
    thread::sleep(200 * MS);
    gateway.signal(Signal::TERM);
    gateway.wait_for_line("the state was saved");
    for (client, has_session) in clients.iter_mut().zip([false, false, true]) {
        client.send(b"Host: a\r\n\r\n");
        let answer = client.answer();
        // On a busy machine the rest of the head may arrive after the time limit of a first
        // request.
        let expected = if has_session {
            [200, 503, 408]
        } else {
            [503, 503, 408]
        };
        assert!(expected.contains(&answer.status), "{answer:?}");
        assert_eq!(cookies(&answer), [""; 0], "{answer:?}");
        let has_time = answer.field("retry-after").is_some();
        assert_eq!(has_time, answer.status == 503, "{answer:?}");
    }
    origin.release("/held");
    drop(held);
    let ended = gateway.wait(std::time::Duration::from_secs(20));
    assert_eq!(ended.code(), Some(0));
    let _gateway = site.start();
    let number = called.number();
    assert_eq!(called.ask(at, "/", "").status, 200);
    assert_eq!(called.number(), number);
}

#[test]
fn a_broken_room_state_is_reported_and_the_gateway_starts() {
    let origin = Origin::start();
    for text in [&b"{\"rooms\": [{}]}"[..], b"", b"\xff\x00"] {
        let site = Chain::new(false, true, &shop(origin.address, "sessions = 1"));
        fs::write(rooms_file(&site), text).expect("a file");
        let gateway = site.start();
        let line =
            gateway.wait_for_line("the waiting rooms of the previous process cannot be read");
        assert_contains!(line, "ERROR", "drip.state.rooms");
        Visitor::walk_in(site.address);
        check_mode(&site);
        eventually("the file is written", || {
            let text = fs::read(rooms_file(&site)).expect("a file");
            serde_json::from_slice::<serde_json::Value>(&text).is_ok()
        });
    }
}
