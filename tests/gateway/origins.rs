//! Origins that fail, and reuse of connections to them.

use std::collections::HashSet;
use std::thread;
use std::time::Duration;

use crate::support::{
    Client, Exchange, Gateway, Origin, RawOrigin, fetch, free_address, now, one_origin,
};

/// A file that only forwards; `more` are further fields of the origin.
fn forwarding(to: std::net::SocketAddr, more: &str) -> String {
    one_origin(to, "", more)
}

#[test]
fn an_origin_that_is_down_is_a_502() {
    let gateway = Gateway::start(&forwarding(free_address(), ""));
    assert_eq!(fetch(gateway.address(), "/").status, 502);
}

#[test]
fn an_origin_that_answers_nonsense_is_a_502() {
    let origin = Origin::answering(|exchange| {
        exchange.send(b"what?\r\n\r\n")?;
        Exchange::close()
    });
    let gateway = Gateway::start(&forwarding(origin.address, ""));
    assert_eq!(fetch(gateway.address(), "/").status, 502);
}

#[test]
fn an_origin_that_closes_instead_of_answering_is_a_502() {
    let origin = Origin::answering(|_| Exchange::close());
    let gateway = Gateway::start(&forwarding(origin.address, ""));
    assert_eq!(fetch(gateway.address(), "/").status, 502);
    assert_eq!(
        origin.arrivals().len(),
        1,
        "on a new connection there is no reason to try again"
    );
}

#[test]
fn an_origin_that_takes_a_request_and_never_answers_is_a_504_in_time() {
    let origin = Origin::answering(|_| {
        loop {
            thread::park();
        }
    });
    let gateway = Gateway::start(&forwarding(
        origin.address,
        "response_timeout = \"300ms\"\n",
    ));
    let began = now();
    assert_eq!(fetch(gateway.address(), "/").status, 504);
    let took = began.elapsed();
    assert!((300..1000).contains(&took.as_millis()), "it took {took:?}");
}

#[test]
fn an_origin_that_comes_back_is_used_again() {
    let address = {
        let origin = Origin::start();
        origin.address
    };
    let gateway = Gateway::start(&forwarding(address, ""));
    assert_eq!(fetch(gateway.address(), "/").status, 502);
    let origin = Origin::start();
    let file = forwarding(origin.address, "");
    gateway.site.write(&file);
    gateway.signal(rustix::process::Signal::HUP);
    crate::support::eventually("the origin that is there is used", || {
        fetch(gateway.address(), "/").status == 200
    });
}

#[test]
fn an_origin_that_closes_idle_connections_costs_no_client_an_error() {
    let origin = Origin::answering(|exchange| {
        exchange.reply(b"ok")?;
        if exchange.nth == 2 {
            Exchange::close()
        } else {
            Ok(())
        }
    });
    let gateway = Gateway::start(&forwarding(origin.address, ""));
    let mut client = Client::connect(gateway.address());
    for nth in 0..200 {
        client.get("/");
        assert_eq!(client.answer().status, 200, "request {nth}");
    }
}

#[test]
fn a_post_is_not_sent_over_a_connection_that_the_origin_has_closed_while_it_was_idle() {
    let origin = RawOrigin::start();
    let gateway = Gateway::start(&forwarding(origin.address, ""));
    let mut client = Client::connect(gateway.address());
    for _ in 0..50 {
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
        let mut connection = origin.accept();
        assert_eq!(connection.request().body, b"hello");
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        let answer = client.answer();
        assert_eq!((answer.status, answer.text().as_str()), (200, "ok"));
        // It is closed when the next request is sent; how long before does not matter.
        connection.close();
    }
}

#[test]
fn connections_to_the_origin_are_used_again() {
    let origin = Origin::start();
    let gateway = Gateway::start(&format!("workers = 2\n{}", forwarding(origin.address, "")));
    for _ in 0..10 {
        let mut client = Client::connect(gateway.address());
        for _ in 0..10 {
            client.get("/");
            assert_eq!(client.answer().status, 200);
        }
    }
    let connections: HashSet<_> = origin
        .arrivals()
        .iter()
        .map(|arrival| arrival.connection)
        .collect();
    assert_eq!(origin.arrivals().len(), 100);
    assert!(
        connections.len() <= 2,
        "{} connections for two workers",
        connections.len()
    );
}

/// What a client gets of a response if the origin sends only `part`.
fn cut_short(part: &'static [u8]) -> (std::io::Result<()>, Vec<u8>, Vec<u8>) {
    let origin = Origin::answering(|exchange| {
        exchange.send(part)?;
        // The gateway forwards what came before it learns that nothing more will come.
        thread::sleep(Duration::from_millis(50));
        Exchange::close()
    });
    let gateway = Gateway::start(&forwarding(origin.address, ""));
    let mut client = Client::ask(gateway.address(), "/");
    let head = client.head();
    let mut body = Vec::new();
    let ended = client.pass_body(&head, |piece| body.extend_from_slice(piece));
    (ended, body, client.rest())
}

#[test]
fn an_answer_that_the_origin_cuts_short_breaks_the_clients_connection() {
    let (ended, body, rest) = cut_short(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart");
    assert!(ended.is_err(), "nobody takes the part for the whole");
    assert_eq!(
        (body.as_slice(), rest.as_slice()),
        (b"part".as_slice(), b"".as_slice())
    );
}

#[test]
fn chunks_that_the_origin_cuts_short_never_end_cleanly() {
    let (ended, body, rest) =
        cut_short(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n");
    assert!(ended.is_err(), "nobody takes the part for the whole");
    assert_eq!(
        (body.as_slice(), rest.as_slice()),
        (b"part".as_slice(), b"".as_slice())
    );
}

#[test]
fn answers_without_a_body_come_whole_with_their_length_and_the_connection_goes_on() {
    let heads = [
        ("304 Not Modified", "Content-Length: 500\r\n"),
        ("304 Not Modified", ""),
        ("204 No Content", ""),
    ];
    for (status, field) in heads {
        let origin = Origin::answering(move |exchange| {
            exchange.send(format!("HTTP/1.1 {status}\r\nETag: \"x\"\r\n{field}\r\n").as_bytes())
        });
        let gateway = Gateway::start(&forwarding(origin.address, ""));
        let mut client = Client::connect(gateway.address());
        for _ in 0..3 {
            client.get("/");
            let head = client.head();
            assert!(head.first_line.ends_with(status), "{}", head.first_line);
            assert_eq!(head.field("etag"), Some("\"x\""));
            assert_eq!(
                head.length(),
                (!field.is_empty()).then_some(500),
                "{status}"
            );
        }
    }
}

#[test]
fn response_timeout_does_not_run_while_the_client_still_sends() {
    let origin = Origin::answering(|exchange| {
        let body = exchange.body()?;
        if body.ends_with(b"!") {
            exchange.reply(&body)
        } else {
            loop {
                thread::park();
            }
        }
    });
    let gateway = Gateway::start(&forwarding(
        origin.address,
        "response_timeout = \"500ms\"\n",
    ));
    let upload = |last: &[u8]| {
        let mut client = Client::connect(gateway.address());
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n");
        for _ in 0..9 {
            client.send(b"a");
            thread::sleep(Duration::from_millis(100));
        }
        client.send(last);
        let sent = now();
        let answer = client.answer();
        (answer.status, sent.elapsed())
    };
    assert_eq!(upload(b"!").0, 200);
    let (status, took) = upload(b"?");
    assert_eq!(status, 504);
    assert!((450..1000).contains(&took.as_millis()), "{took:?}");
}

#[test]
fn an_answer_that_is_late_for_a_route_alone_takes_no_server_out() {
    let origins = [(); 2].map(|()| {
        Origin::answering(|exchange| {
            if exchange.target() == "/search" {
                thread::sleep(Duration::from_millis(500));
            }
            exchange.reply(b"ok")
        })
    });
    let [one, other] = origins.each_ref().map(|it| it.address);
    let file = forwarding(one, "max_fails = 1\nfail_timeout = \"1h\"\n");
    let both = format!("\"http://{one}\", \"http://{other}\"");
    let file = file.replace(&format!("\"http://{one}\""), &both);
    let search = "[[routes]]\npath = \"/search\"\norigin = \"app\"\nresponse_timeout = \"100ms\"\n";
    let gateway = Gateway::start(&(file + search));
    for _ in 0..6 {
        assert_eq!(fetch(gateway.address(), "/search").status, 504);
    }
    for _ in 0..4 {
        assert_eq!(fetch(gateway.address(), "/quick").status, 200);
    }
    assert!(origins.iter().all(|it| !it.moments("/quick").is_empty()));
}

#[test]
fn a_route_has_a_response_timeout_of_its_own() {
    let origin = Origin::answering(|exchange| {
        if exchange.target() == "/report" {
            thread::sleep(Duration::from_millis(800));
            return exchange.reply(b"ok");
        }
        loop {
            thread::park();
        }
    });
    let route = |path: &str, timeout: &str| {
        format!(
            "[[routes]]\npath = \"{path}\"\norigin = \"app\"\nresponse_timeout = \"{timeout}\"\n"
        )
    };
    let file = forwarding(origin.address, "response_timeout = \"500ms\"\n");
    let file = file + &route("/report", "10s") + &route("/search", "100ms");
    let gateway = Gateway::start(&file);
    for (target, status, times) in [
        ("/report", 200, 800..3000),
        ("/search", 504, 100..450),
        ("/", 504, 500..3000),
    ] {
        let began = now();
        assert_eq!(fetch(gateway.address(), target).status, status, "{target}");
        let took = began.elapsed();
        assert!(times.contains(&took.as_millis()), "{target}: {took:?}");
    }
}
