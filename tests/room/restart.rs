//! A restart: places, tickets and sessions outlive the process.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;

use rustix::process::Signal;

use super::{JSON, Restarts, SECRET, Visitor, cookies, position, shop};
use crate::support::{Client, HoldingOrigin, MS, Origin, eventually, fetch};

#[test]
fn after_a_stop_everybody_has_its_place_and_the_numbers_go_on() {
    let origin = Origin::start();
    let site = Restarts::new(true, &shop(origin.address, "sessions = 1"));
    let at = site.address;
    let gateway = site.start();
    let mut inside = Visitor::walk_in(at);
    let mut waiting: Vec<_> = (0..3).map(|_| Visitor::draw(at)).collect();
    let mode = fs::metadata(site.rooms_file())
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    Restarts::stop(gateway);
    let gateway = site.start();
    let line = gateway.wait_for_line("the waiting room goes on from the process before");
    assert!(
        line.contains("origin=\"shop\" sessions=1 waiting=3"),
        "{line}"
    );
    for (visitor, place) in waiting.iter_mut().zip(1..) {
        let number = visitor.number();
        assert_eq!(position(&visitor.ask(at, "/", JSON)), Some(place));
        assert_eq!(visitor.number(), number);
    }
    assert!(inside.is_inside(at));
    assert_eq!(Visitor::draw(at).number(), 5);
    let mode = fs::metadata(site.rooms_file())
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_call_outlives_the_process_and_its_time_begins_anew() {
    let origin = Origin::start();
    let site = Restarts::new(
        true,
        &shop(
            origin.address,
            "sessions = 1\nidle = \"1s\"\nclaim = \"5s\"",
        ),
    );
    let at = site.address;
    let gateway = site.start();
    Visitor::walk_in(at);
    let mut called = Visitor::draw(at);
    super::wait_until_called(&gateway);
    Restarts::stop(gateway);
    // Longer than its time.
    thread::sleep(7500 * MS);
    let _gateway = site.start();
    let number = called.number();
    assert_eq!(called.ask(at, "/", "").status, 200);
    assert_eq!(called.number(), number);
}

#[test]
fn after_a_kill_no_number_is_given_twice_and_who_waits_keeps_its_place() {
    let origin = Origin::start();
    let room = "sessions = 1\nidle = \"3s\"\nclaim = \"30s\"";
    let site = Restarts::new(true, &shop(origin.address, room));
    let at = site.address;
    let (mut numbers, mut count) = (HashSet::new(), 0);
    let mut gateway = site.start();
    let mut first = Visitor::walk_in(at);
    // The session is in the file within a second.
    for _ in 0..2 {
        thread::sleep(1000 * MS);
        assert!(first.is_inside(at));
    }
    let mut early: Vec<_> = (0..2).map(|_| Visitor::draw(at)).collect();
    thread::sleep(1500 * MS);
    // These are not in it, or only some.
    early.extend((0..3).map(|_| Visitor::draw(at)));
    for _kill in 0..2 {
        Restarts::kill(gateway);
        gateway = site.start();
        let drawn = (0..20).map(|_| Visitor::draw(at).number());
        numbers.extend(drawn);
        count += 20;
    }
    assert!(first.is_inside(at));
    numbers.extend(early.iter().map(Visitor::number).chain([first.number()]));
    assert_eq!(
        numbers.len(),
        count + early.len() + 1,
        "a number was given twice"
    );
    // Each keeps its place; the order in which they enter: `waiting_room::scenarios`.
    for visitor in &mut early {
        let number = visitor.number();
        assert_ne!(visitor.ask(at, "/", "").status, 200);
        assert_eq!(visitor.number(), number);
    }
}

#[test]
fn who_entered_just_before_a_kill_is_inside() {
    let origin = Origin::start();
    let room = "sessions = 1\nidle = \"2s\"\nclaim = \"30s\"";
    let site = Restarts::new(true, &shop(origin.address, room));
    let at = site.address;
    let gateway = site.start();
    Visitor::walk_in(at);
    let mut second = Visitor::draw(at);
    super::wait_until_called(&gateway);
    // The call is in the file, and the session that begins now is not.
    thread::sleep(1500 * MS);
    assert_eq!(second.ask(at, "/", "").status, 200);
    Restarts::kill(gateway);
    let _gateway = site.start();
    assert!(second.is_inside(at));
    let mut third = Visitor::default();
    assert_ne!(third.ask(at, "/", "").status, 200, "the place is taken");
}

#[test]
fn without_a_state_file_tickets_of_the_process_before_draw_anew() {
    let origin = Origin::start();
    let site = Restarts::new(
        false,
        &shop(origin.address, &format!("{SECRET}sessions = 1")),
    );
    let at = site.address;
    let gateway = site.start();
    let mut inside = Visitor::walk_in(at);
    let mut waits = Visitor::draw(at);
    let old = (inside.session.clone(), waits.ticket.clone());
    Restarts::stop(gateway);
    let _gateway = site.start();
    assert!(!site.rooms_file().exists());
    // The place is free, and goes to whoever comes first.
    let answer = waits.ask(at, "/", "");
    assert_eq!((answer.status, cookies(&answer).len()), (200, 1));
    assert_ne!(inside.ask(at, "/", "").status, 200);
    // The numbers are the same, and what was signed is not.
    assert_eq!((waits.number(), inside.number()), (1, 2));
    assert_ne!((waits.session, inside.ticket), old);
}

#[test]
fn nobody_gets_a_number_or_a_session_that_the_next_process_does_not_know() {
    let origin = HoldingOrigin::of("/held");
    let room = "sessions = 2\nidle = \"1s\"\nclaim = \"30s\"";
    let site = Restarts::new(true, &shop(origin.origin.address, room));
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
    // The workers have read what came.
    thread::sleep(200 * MS);
    gateway.signal(Signal::TERM);
    gateway.wait_for_line("the state is written");
    for (client, has_session) in clients.iter_mut().zip([false, false, true]) {
        client.send(b"Host: a\r\n\r\n");
        let answer = client.answer();
        // On a busy machine the rest of the head may come after the time for a first request.
        let expected = if has_session {
            [200, 503, 408]
        } else {
            [503, 503, 408]
        };
        assert!(expected.contains(&answer.status), "{answer:?}");
        assert_eq!(cookies(&answer), [""; 0], "{answer:?}");
        assert_eq!(
            answer.field("retry-after").is_some(),
            answer.status == 503,
            "{answer:?}"
        );
    }
    origin.release("/held");
    drop(held);
    assert_eq!(
        gateway.wait(std::time::Duration::from_secs(20)).code(),
        Some(0)
    );
    let _gateway = site.start();
    let number = called.number();
    assert_eq!(called.ask(at, "/", "").status, 200);
    assert_eq!(called.number(), number);
}

#[test]
fn a_broken_file_of_rooms_is_told_and_the_gateway_starts() {
    let origin = Origin::start();
    for text in [
        &b"{\"rooms\": [{}]}"[..],
        b"",
        b"\xff\x00",
        b"[[[[[[",
        b"{\"rooms\":[]}{",
    ] {
        let site = Restarts::new(true, &shop(origin.address, "sessions = 1"));
        fs::write(site.rooms_file(), text).expect("a file");
        let gateway = site.start();
        let line = gateway.wait_for_line("the waiting rooms of the process before cannot be read");
        assert!(
            line.contains("ERROR") && line.contains("drip.state.rooms"),
            "{line}"
        );
        Visitor::walk_in(site.address);
        let mode = fs::metadata(site.rooms_file())
            .expect("a file")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        eventually("the file is written", || {
            let text = fs::read(site.rooms_file()).expect("a file");
            serde_json::from_slice::<serde_json::Value>(&text).is_ok()
        });
    }
}

#[test]
fn a_file_of_rooms_with_strange_numbers_does_no_harm() {
    let origin = Origin::start();
    let secret = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let max = u64::MAX;
    for (name, numbers) in [
        (
            "called above drawn",
            "\"drawn\":1,\"reserved\":1,\"called\":9,\"emptied\":7".to_owned(),
        ),
        (
            "reserved below drawn",
            "\"drawn\":9,\"reserved\":1,\"called\":1,\"emptied\":0".to_owned(),
        ),
        (
            "all the largest",
            format!("\"drawn\":{max},\"reserved\":{max},\"called\":{max},\"emptied\":{max}"),
        ),
    ] {
        for rest in [
            "\"gaps\":[],\"lotteries\":[],\"sessions\":[],\"calls\":[]".to_owned(),
            format!(
                "\"gaps\":[[9,1],[0,{max}]],\"lotteries\":[[{max},{max},[1,2,3,4,5,6]],[0,0,[1,2,3,4,5,6]]],\
                 \"sessions\":[[{max},{max}]],\"calls\":[[{max},{max},{max}],[0,0,0]]"
            ),
        ] {
            let site = Restarts::new(true, &shop(origin.address, "sessions = 3"));
            let text = format!(
                "{{\"rooms\":[{{\"origin\":\"shop\",\"life\":1,\"secret\":\"{secret}\",{numbers},\"is_open\":true,\
                 {rest}}}]}}"
            );
            fs::write(site.rooms_file(), text).expect("a file");
            let gateway = site.start();
            // Each is let in, told to wait, or told that there is no number.
            for _ in 0..5 {
                let answer = fetch(site.address, "/");
                assert!(
                    matches!(answer.status, 200 | 429 | 503),
                    "{name}: {answer:?}"
                );
            }
            assert!(
                !gateway.log().contains("panic"),
                "{name}: {}",
                gateway.log()
            );
            Restarts::stop(gateway);
        }
    }
}
