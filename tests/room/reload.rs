//! Tests of a reload: other limits, other secrets, and a room that is added or removed.

use super::{
    JSON, SECRET, Visitor, cookies, full_shop, position, reload, shop, visitors, wait_until_called,
};
use crate::support::{Gateway, Origin, eventually, fetch};

#[test]
fn more_and_fewer_sessions_apply_at_once_and_no_session_is_ended() {
    let origin = Origin::start();
    let gateway = Gateway::start(&full_shop(origin.address, ""));
    let at = gateway.address();
    let mut inside = vec![Visitor::walk_in(at)];
    let mut waiting: Vec<_> = (0..4).map(|_| Visitor::draw(at)).collect();
    let with_sessions = |count: u32| shop(origin.address, &format!("{SECRET}sessions = {count}"));
    reload(&gateway, &with_sessions(3));
    for _ in 0..2 {
        let mut visitor = waiting.remove(0);
        let number = visitor.number();
        assert_eq!(visitor.ask(at, "/", "").status, 200);
        assert_eq!(visitor.number(), number);
        inside.push(visitor);
    }
    assert_eq!(position(&waiting[0].ask(at, "/", JSON)), Some(1));
    reload(&gateway, &with_sessions(1));
    for visitor in &mut inside {
        assert!(visitor.is_inside(at));
    }
    assert_eq!(position(&waiting[0].ask(at, "/", JSON)), Some(1));
    // Without a number of sessions, all visitors enter.
    let quick = shop(origin.address, &format!("{SECRET}admit = \"1000r/s\""));
    reload(&gateway, &quick);
    eventually("all are called", || visitors(&gateway, "waiting") == 0);
    for visitor in &mut waiting {
        assert_eq!(visitor.ask(at, "/", "").status, 200);
    }
}

#[test]
fn another_pace_and_idle_hold_at_once() {
    let origin = Origin::start();
    let file = |room: &str| shop(origin.address, &format!("{SECRET}{room}"));
    let gateway = Gateway::start(&file("admit = \"1r/h\""));
    let at = gateway.address();
    Visitor::walk_in(at);
    let mut waits = Visitor::draw(at);
    reload(&gateway, &file("admit = \"100r/s\""));
    wait_until_called(&gateway);
    assert_eq!(waits.ask(at, "/", "").status, 200);

    // Both sessions will soon have been idle for a second.
    let short = file("sessions = 2\nidle = \"1s\"\nclaim = \"60s\"");
    reload(&gateway, &short);
    eventually("no visitor is inside", || visitors(&gateway, "inside") == 0);
}

#[test]
fn without_a_room_everybody_comes_in_and_one_that_comes_back_begins_anew() {
    let origin = Origin::start();
    let with = full_shop(origin.address, "");
    let without = format!(
        "[origins.shop]\nservers = [\"http://{}\"]\n[[routes]]\npath = \"/\"\norigin = \"shop\"\n",
        origin.address
    );
    let gateway = Gateway::start(&with);
    let at = gateway.address();
    let mut inside = Visitor::walk_in(at);
    let mut waits = Visitor::draw(at);
    reload(&gateway, &without);
    for answer in [
        inside.ask(at, "/", ""),
        waits.ask(at, "/", ""),
        fetch(at, "/"),
    ] {
        assert_eq!((answer.status, cookies(&answer)), (200, vec![]));
    }
    reload(&gateway, &with);
    // Earlier signatures belong to an earlier room.
    assert_eq!(waits.ask(at, "/", "").status, 200);
    assert_eq!((waits.number(), waits.session.is_some()), (1, true));
    inside.ask(at, "/", "");
    assert_eq!((inside.number(), inside.ticket.is_some()), (2, true));
}

#[test]
fn a_new_secret_signs_anew_and_the_old_one_is_good_until_it_leaves_the_file() {
    let origin = Origin::start();
    let file = |secrets: &str| shop(origin.address, &format!("sessions = 1\nsecret = {secrets}"));
    let (old, new) = ("\"an old one of sixteen\"", "\"a new one of sixteen\"");
    let gateway = Gateway::start(&file(old));
    let at = gateway.address();
    let mut inside = Visitor::walk_in(at);
    let mut waits = Visitor::draw(at);
    let mut away = Visitor::draw(at);
    let before = (inside.session.clone(), waits.ticket.clone());

    reload(&gateway, &file(&format!("[{new}, {old}]")));
    let answer = inside.ask(at, "/", "");
    let found = (answer.status, cookies(&answer).len(), inside.number());
    assert_eq!(found, (200, 1, 1));
    let answer = waits.ask(at, "/", JSON);
    let found = (position(&answer), cookies(&answer).len(), waits.number());
    assert_eq!(found, (Some(1), 1, 2));
    let ticket = waits.ticket.as_deref().expect("a ticket");
    assert!(answer.text().contains(ticket));
    assert_ne!((&inside.session, &waits.ticket), (&before.0, &before.1));
    // Once each.
    assert!(inside.is_inside(at));
    assert_eq!(cookies(&waits.ask(at, "/", "")), [""; 0]);

    reload(&gateway, &file(new));
    assert!(inside.is_inside(at));
    assert_eq!(position(&waits.ask(at, "/", JSON)), Some(1));
    assert_eq!(waits.number(), 2);
    away.ask(at, "/", "");
    assert_eq!(away.number(), 4, "it was away for too long");
    let (session, ticket) = before;
    for mut copied in [
        Visitor {
            session,
            ticket: None,
        },
        Visitor {
            session: None,
            ticket,
        },
    ] {
        assert_ne!(copied.ask(at, "/", "").status, 200);
        assert!(copied.number() > 4);
    }
}
