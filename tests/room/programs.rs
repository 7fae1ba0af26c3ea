//! Tests of visitors that are programs: they send `Drip-Ticket` and `Drip-Session`.

use std::collections::HashSet;
use std::thread;
use std::time::Duration;

use super::{JSON, NO_DRAW, SECRET, Visitor, cookies, counted, full_shop, number, position, shop};
use crate::support::{Client, Gateway, Origin, assert_contains, eventually, fetch, fetch_with};

#[test]
fn a_browser_gets_cookies_and_no_field_of_its_own() {
    let origin = Origin::start();
    let gateway = Gateway::start(&full_shop(origin.address, ""));
    let html = "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n";
    let first = fetch_with(gateway.address(), "/", html);
    assert_eq!((first.status, first.field("drip-session")), (200, None));
    assert_eq!(cookies(&first).len(), 1);
    let second = fetch_with(gateway.address(), "/", html);
    assert_eq!((second.status, second.field("drip-ticket")), (503, None));
    let cookie = cookies(&second)[0];
    let rest = "; Path=/; HttpOnly; SameSite=Lax; Max-Age=604800";
    let value = cookie
        .strip_prefix("drip_ticket_shop=")
        .and_then(|it| it.strip_suffix(rest));
    assert_eq!(number(value.expect("a ticket")), 2, "{cookie}");
    let kind = second.field("content-type");
    assert_eq!(kind, Some("text/html; charset=utf-8"));
    assert_eq!(second.field("cache-control"), Some("no-store"));
    let text = second.text();
    assert_contains!(text, "id=\"position\" class=\"value\">1<");
    let cookie = format!(
        "{html}Cookie: drip_ticket_shop={}\r\n",
        value.expect("a ticket")
    );
    let again = fetch_with(gateway.address(), "/", &cookie);
    assert_eq!(again.status, 503);
    assert!(cookies(&again).is_empty(), "it keeps its ticket");
    // A HEAD shows no page.
    let mut client = gateway.connect();
    client.send(format!("HEAD / HTTP/1.1\r\nHost: a\r\n{html}\r\n").as_bytes());
    let head = client.head();
    assert!(head.first_line.contains(" 429 "), "{head:?}");
    assert_eq!(number(head.field("drip-ticket").expect("a ticket")), 3);
}

#[test]
fn a_waiting_visitor_gets_its_position_and_enters_once_called() {
    let origin = Origin::start();
    let file = shop(
        origin.address,
        &format!("{SECRET}sessions = 1\nidle = \"2s\"\nclaim = \"30s\""),
    );
    let gateway = Gateway::start(&format!("{file}reject_status = 420\n"));
    let at = gateway.address();
    let mut first = Visitor::walk_in(at);
    let mut second = Visitor::default();
    let answer = second.ask(at, "/", "");
    assert_eq!(answer.status, 420);
    assert!((2..=60).contains(&answer.number("retry-after")));
    assert_eq!(answer.field("cache-control"), Some("no-store"));
    let kind = answer.field("content-type");
    assert_eq!(kind, Some("text/plain; charset=utf-8"));
    let text = answer.text();
    assert!(text.starts_with("Waiting: position 1"), "{text}");
    assert_eq!(cookies(&answer).len(), 1);
    let mut third = Visitor::default();
    let answer = third.ask(at, "/", JSON);
    let received: serde_json::Value = serde_json::from_slice(&answer.body).expect("JSON");
    assert_eq!(received["position"], 2, "{received}");
    assert!(received["wait_seconds"].is_u64(), "{received}");
    assert_eq!(received["ticket"].as_str(), third.ticket.as_deref());
    assert_eq!(answer.field("content-type"), Some("application/json"));
    let arrived = origin.arrivals().len();
    assert_eq!(arrived, 1, "a waiting request is not forwarded");

    let used = second.ticket.clone().expect("a ticket");
    let answer = second.wait(at);
    let of_session = number(&used);
    assert_eq!(of_session, second.number(), "the ticket's number");
    let has_cookie = cookies(&answer)
        .iter()
        .any(|it| it.starts_with("drip_room_shop="));
    assert!(has_cookie, "{answer:?}");
    assert!(second.is_inside(at));
    // The ticket is spent: its next user draws a new number, behind all others.
    let mut copied = Visitor {
        ticket: Some(used),
        ..Visitor::default()
    };
    assert_eq!(copied.ask(at, "/", "").status, 420);
    assert!(copied.number() > third.number());
    // The first visitor was idle for so long that another one took its session.
    assert_eq!(first.ask(at, "/", "").status, 420);
    assert!(first.number() > copied.number());
    third.wait(at);
}

#[test]
fn a_visitor_that_polls_too_often_gets_429_and_keeps_its_position() {
    let origin = Origin::start();
    let gateway = Gateway::start(&format!(
        "{}reject_status = 503\n",
        full_shop(origin.address, "")
    ));
    let at = gateway.address();
    Visitor::walk_in(at);
    let mut hasty = Visitor::draw(at);
    let mut calm = Visitor::draw(at);
    let statuses: Vec<u16> = (0..6).map(|_| hasty.ask(at, "/", JSON).status).collect();
    assert_eq!(statuses, [503, 503, 503, 503, 429, 429]);
    let answer = hasty.ask(at, "/", JSON);
    // Its expected wait is ten minutes.
    let after = answer.number("retry-after");
    assert!((40..=60).contains(&after), "{answer:?}");
    assert_eq!((position(&answer), hasty.number()), (Some(1), 2));
    let page = fetch_with(
        at,
        "/",
        &format!(
            "Accept: text/html\r\nCookie: drip_ticket_shop={}\r\n",
            hasty.ticket.expect("a ticket")
        ),
    );
    assert_eq!(page.status, 429);
    assert!(page.text().contains("id=\"room\""));
    let status = calm.ask(at, "/", "").status;
    assert_eq!(status, 503, "another visitor is served as before");
}

#[test]
fn a_poll_that_is_let_in_gets_its_session_and_does_not_reach_the_origin() {
    let origin = Origin::start();
    let room = format!("{SECRET}sessions = 1\nidle = \"1s\"\nclaim = \"30s\"");
    let gateway = Gateway::start(&shop(origin.address, &room));
    let at = gateway.address();
    let poll = "Drip-Poll: 1\r\nAccept: text/html\r\n";
    // One visitor that enters at once, and one that is called.
    let answer = fetch_with(at, "/", poll);
    for answer in [answer, {
        let waits = fetch_with(at, "/", poll);
        assert_eq!(waits.status, 503);
        let ticket = cookies(&waits)[0]
            .split(';')
            .next()
            .expect("a cookie")
            .to_owned();
        thread::sleep(Duration::from_secs(waits.number("retry-after")));
        let answer = fetch_with(at, "/", &format!("{poll}Cookie: {ticket}\r\n"));
        let ended = "drip_ticket_shop=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0";
        assert_eq!(cookies(&answer)[1], ended);
        answer
    }] {
        assert_eq!((answer.status, &*answer.text()), (204, ""));
        assert_eq!(answer.field("cache-control"), Some("no-store"));
        assert_eq!(answer.field("content-length"), None);
        assert_eq!(answer.field("content-type"), None);
        let has_session = cookies(&answer)[0].starts_with("drip_room_shop=");
        assert!(has_session, "{answer:?}");
        assert!(origin.arrivals().is_empty());
    }
    // The connection stays open.
    let mut client = Client::connect(at);
    for _ in 0..2 {
        client.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{poll}\r\n").as_bytes());
        assert!(matches!(client.answer().status, 204 | 503));
    }
}

#[test]
fn routes_without_the_room_and_refused_clients_do_not_ask_it() {
    let origin = Origin::start();
    let file = full_shop(origin.address, "");
    let gateway = Gateway::start(&format!(
        "{file}[[routes]]\npath = \"/assets/\"\norigin = \"shop\"\nroom = false\n\
         [[routes]]\npath = \"/denied\"\norigin = \"shop\"\ndeny = [\"127.0.0.0/8\"]\n\
         [[routes]]\npath = \"/gone\"\nrefuse = 410\n"
    ));
    let at = gateway.address();
    for target in ["/denied", "/gone", "/assets/a.css"] {
        let answer = fetch(at, target);
        assert_eq!(cookies(&answer), [""; 0], "{target}");
    }
    assert_eq!(fetch(at, "/denied").status, 403);
    // None of them took the session.
    let visitor = Visitor::walk_in(at);
    assert_eq!(visitor.number(), 1);
    Visitor::draw(at);
    assert_eq!(fetch(at, "/assets/a.css").status, 200);
    assert_eq!(fetch(at, "/denied").status, 403);
}

#[test]
fn a_session_begins_on_rejections_of_a_zone_and_of_the_gate_and_on_errors_too() {
    let origin = Origin::start();
    let dead = crate::support::free_address();
    let room = |name: &str, server, gate: &str| {
        format!(
            "[origins.{name}]\nservers = [\"http://{server}\"]\n{gate}[origins.{name}.room]\n{SECRET}\
             sessions = 1\n"
        )
    };
    let route = |name: &str, more: &str| {
        format!("[[routes]]\npath = \"/{name}\"\norigin = \"{name}\"\n{more}\n")
    };
    let gateway = Gateway::start(&format!(
        "{}{}{}{}[zones.z]\nkey = \"$remote_addr\"\nrate = \"1r/m\"\n{}{}{}",
        "max_body_size = 10\n",
        room("zone", origin.address, ""),
        room(
            "gate",
            origin.address,
            "rate = \"1r/m\"\nqueue_timeout = \"90s\"\n"
        ),
        room("dead", dead, ""),
        route(
            "zone",
            "limits = [{ zone = \"z\" }]\n[[routes]]\npath = \"/used\"\norigin = \"zone\"\nroom = false\n\
               limits = [{ zone = \"z\" }]"
        ),
        route(
            "gate",
            "[[routes]]\npath = \"/full\"\norigin = \"gate\"\nroom = false"
        ),
        route("dead", ""),
    ));
    let at = gateway.address();
    let statuses = ["/used", "/full"].map(|path| fetch(at, path).status);
    assert_eq!(statuses, [200; 2]);
    let _waits_at_the_gate = Client::ask(at, "/full");
    eventually("one waits", || {
        let labels = [("origin", "gate")];
        gateway.count("drip_origin_queue_depth", &labels) == 1
    });
    for (target, status) in [("/zone", 429), ("/gate", 503), ("/dead", 502)] {
        let mut visitor = Visitor::default();
        let answer = visitor.ask(at, target, "");
        assert_eq!(answer.status, status, "{target}: {answer:?}");
        let session = visitor.session.clone().expect("a session");
        let name = target.replace('/', "_");
        let begin = format!("drip_room{name}={session};");
        assert!(cookies(&answer)[0].starts_with(&begin));
        // The same visitor is inside, and no other is.
        assert_eq!(visitor.ask(at, target, "").status, status, "{target}");
        assert_eq!(visitor.session, Some(session));
        let other = Visitor::default().ask(at, target, "");
        assert!(other.field("drip-ticket").is_some(), "{other:?}");
    }
}

#[test]
fn a_rejected_body_leaves_the_connection_usable() {
    let origin = Origin::start();
    let gateway = Gateway::start(&full_shop(origin.address, ""));
    let at = gateway.address();
    let mut inside = Visitor::walk_in(at);
    let mut client = Client::connect(at);
    let mut numbers = HashSet::new();
    for nth in 0..3 {
        client.send(b"POST /order HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nGET /");
        let answer = client.answer();
        assert_eq!(answer.status, 429);
        assert_eq!(answer.field("connection"), None, "{nth}");
        numbers.insert(number(answer.field("drip-ticket").expect("a ticket")));
    }
    client.send(
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    );
    assert_eq!(client.answer().status, 429);
    assert_eq!(client.fetch("/").status, 429);
    assert_eq!(numbers.len(), 3);
    // The room does not wait for the body.
    let mut client = Client::connect(at);
    client.send(
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\nExpect: 100-continue\r\n\r\n",
    );
    assert_eq!(client.answer().status, 429);
    assert!(inside.is_inside(at));
    assert_eq!(origin.arrivals().len(), 2, "no order reached the origin");
}

#[test]
fn a_client_draws_so_many_numbers_and_no_more() {
    let origin = Origin::start();
    let room = format!("{SECRET}sessions = 1\ndraw = {{ zone = \"draws\", burst = 2 }}");
    let zone = "[zones.draws]\nkey = \"$http_x_client\"\nrate = \"1r/h\"\n";
    let file = shop(origin.address, &room).replace("[[routes]]", &format!("{zone}[[routes]]"));
    let gateway = Gateway::start(&file);
    let at = gateway.address();
    let mut visitors: Vec<Visitor> = Vec::new();
    for nth in 0..5 {
        let mut visitor = Visitor::default();
        let answer = visitor.ask(at, "/", "X-Client: bot\r\n");
        match nth {
            0 => assert_eq!(answer.status, 200),
            1 | 2 => assert!(visitor.ticket.is_some(), "{nth}: {answer:?}"),
            _ => {
                assert_eq!(answer.status, 429);
                assert!(answer.number("retry-after") > 3000, "{answer:?}");
                assert_eq!((visitor.ticket.as_ref(), cookies(&answer)), (None, vec![]));
            }
        }
        visitors.push(visitor);
    }
    // Tickets and sessions drawn before stay valid.
    let answer = visitors[1].ask(at, "/", "X-Client: bot\r\n");
    assert_eq!(answer.number("retry-after") / 61, 0);
    assert!(visitors[0].is_inside(at));
    let mut other = Visitor::default();
    other.ask(at, "/", "X-Client: other\r\n");
    assert_eq!(other.number(), 4, "a refused one takes no number");
    assert_eq!(counted(&gateway, "draw_refused"), 2);
}

#[test]
fn without_draw_an_address_draws_so_many_numbers_and_others_come_in() {
    let origin = Origin::start();
    let room = format!("{SECRET}sessions = 40\nidle = \"2s\"\nclaim = \"4s\"");
    let file = shop(origin.address, &room).replace(NO_DRAW, "");
    let gateway = Gateway::start(&format!("trusted_proxies = [\"127.0.0.1\"]\n{file}"));
    let at = gateway.address();
    let from = |address: &str| format!("X-Forwarded-For: {address}\r\n");
    let (mut drawn, mut refused) = (0, 0);
    for nth in 0..300 {
        // All addresses of a prefix are one client.
        let mut visitor = Visitor::default();
        let answer = visitor.ask(at, "/", &from(&format!("2001:db8::{nth:x}")));
        if visitor.ticket.is_some() || visitor.session.is_some() {
            drawn += 1;
            continue;
        }
        assert_eq!(answer.status, 429, "{answer:?}");
        let after = answer.number("retry-after");
        assert!((1..=2).contains(&after), "{answer:?}");
        assert_eq!(cookies(&answer), Vec::<String>::new());
        refused += 1;
    }
    assert!((20..60).contains(&drawn), "{drawn}");
    assert_eq!(counted(&gateway, "draw_refused"), refused);
    let answer = Visitor::default().ask(at, "/", &from("2001:db8:0:1::1"));
    assert_eq!(answer.status, 200, "half of the room is left: {answer:?}");
}

#[test]
fn bound_tickets_and_sessions_are_good_for_their_client_only() {
    let origin = Origin::start();
    for (bind, mine, foreign) in [
        (
            "$remote_addr",
            "X-Forwarded-For: 192.0.2.1\r\n",
            "X-Forwarded-For: 192.0.2.2\r\n",
        ),
        ("$http_x_login", "X-Login: ann\r\n", "X-Login: bob\r\n"),
        ("$http_x_login", "X-Login: ann\r\n", ""),
    ] {
        let file = full_shop(origin.address, &format!("bind = \"{bind}\""));
        let gateway = Gateway::start(&format!("trusted_proxies = [\"127.0.0.1\"]\n{file}"));
        let at = gateway.address();
        let (mut inside, mut waits) = (Visitor::default(), Visitor::default());
        assert_eq!(inside.ask(at, "/", mine).status, 200);
        waits.ask(at, "/", mine);
        for visitor in [&inside, &waits] {
            let mut thief = visitor.clone();
            let answer = thief.ask(at, "/", foreign);
            assert_ne!(answer.status, 200, "{bind}");
            assert!(thief.number() > 2, "it is a visitor of its own");
        }
        assert_eq!(inside.ask(at, "/", mine).status, 200, "{bind}");
        let number = waits.number();
        waits.ask(at, "/", mine);
        assert_eq!(waits.number(), number, "{bind}");
    }
}

#[test]
fn two_rooms_on_one_host_keep_two_cookies() {
    let origin = Origin::start();
    let room = |name: &str| {
        format!(
            "[origins.{name}]\nservers = [\"http://{}\"]\n[origins.{name}.room]\n{SECRET}sessions = 1\n\
             [[routes]]\npath = \"/{name}\"\norigin = \"{name}\"\n",
            origin.address
        )
    };
    let gateway = Gateway::start(&format!("{}{}", room("one"), room("two")));
    let at = gateway.address();
    let mut jar = Vec::new();
    for name in ["one", "two"] {
        let answer = fetch(at, &format!("/{name}"));
        assert_eq!(answer.status, 200);
        let cookie = cookies(&answer)[0]
            .split(';')
            .next()
            .expect("a cookie")
            .to_owned();
        assert!(cookie.starts_with(&format!("drip_room_{name}=")));
        jar.push(cookie);
    }
    let both = format!("Cookie: {}\r\n", jar.join("; "));
    for name in ["one", "two"] {
        assert_eq!(fetch_with(at, &format!("/{name}"), &both).status, 200);
    }
    // Each is valid only in its own room, under any field name.
    let swapped = format!(
        "Cookie: {}; {}\r\n",
        jar[0].replace("_one", "_two"),
        jar[1].replace("_two", "_one")
    );
    for name in ["one", "two"] {
        assert_eq!(fetch_with(at, &format!("/{name}"), &swapped).status, 429);
    }
}

#[test]
fn no_cache_keeps_an_answer_that_begins_a_session_or_queues() {
    let kept = "Cache-Control: public, max-age=60\r\nCDN-Cache-Control: max-age=600\r\n\
                Surrogate-Control: max-age=600\r\nExpires: Thu, 01 Jan 2032 00:00:00 GMT\r\nETag: \"a\"\r\n";
    let origin = Origin::answering(move |exchange| {
        exchange.send(format!("HTTP/1.1 200 OK\r\n{kept}Content-Length: 2\r\n\r\nok").as_bytes())
    });
    let file = full_shop(origin.address, "");
    let gateway = Gateway::start(&format!(
        "{file}response_headers = {{ x-cdn-cache-control = \"max-age=9\", cache-control = \"max-age=9\" }}\n"
    ));
    let (mut visitor, first) = Visitor::come(gateway.address());
    let waits = gateway.fetch("/");
    assert_eq!((first.status, waits.status), (200, 429));
    for answer in [first, waits] {
        let fields = answer.head.fields.iter();
        let mut of_caches: Vec<_> = fields
            .filter(|(name, _)| name.contains("control") || name == "expires")
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        of_caches.sort();
        let requested = ["cache-control: max-age=9", "cache-control: no-store"];
        assert_eq!(of_caches, requested, "{}", answer.status);
    }
    // The next response is as the origin made it.
    let later = visitor.ask(gateway.address(), "/", "");
    assert_eq!(later.field("cdn-cache-control"), Some("max-age=600"));
}

#[test]
fn cookies_have_same_site_and_are_secure_where_the_client_uses_tls() {
    let origin = Origin::start();
    let (https, http) = (
        "X-Forwarded-Proto: https\r\n",
        "X-Forwarded-Proto: http\r\n",
    );
    for (trusted, room, proto, end) in [
        ("[\"127.0.0.1\"]", "", https, "; SameSite=Lax; Secure"),
        ("[\"127.0.0.1\"]", "", http, "; SameSite=Lax"),
        ("[]", "", https, "; SameSite=Lax"),
        ("[]", "same_site = \"strict\"", "", "; SameSite=Strict"),
        ("[]", "same_site = \"none\"", "", "; SameSite=None; Secure"),
    ] {
        let file = full_shop(origin.address, room);
        let gateway = Gateway::start(&format!("trusted_proxies = {trusted}\n{file}"));
        for _session_and_ticket in 0..2 {
            let answer = fetch_with(gateway.address(), "/", proto);
            let [cookie] = cookies(&answer)[..] else {
                panic!("{answer:?}")
            };
            let cookie = cookie.replace("; Max-Age=604800", "");
            assert!(cookie.ends_with(end), "{cookie}");
        }
    }
}
