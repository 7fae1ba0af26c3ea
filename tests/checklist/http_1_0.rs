//! Checklist lines 8 and 13: HTTP/1.0 clients without Host, or with kept connections.

use std::time::Duration;

use super::bed::{LAST, OK, Testbed, ask, each, everybody, forwarding, nginx_and_drip, ok_with};
use crate::support::{End, Gateway, Message, Origin, Raw, RawOrigin, free_address};

/// Returns the request of an HTTP/1.0 client as the only server of this file receives it.
fn seen_by(origin: &RawOrigin, file: &str, request: &str) -> Message {
    let gateway = Gateway::start(file);
    let mut client = Raw::connect(gateway.address());
    client.send(request);
    let mut server = origin.accept();
    let seen = server.request();
    server.send(LAST);
    assert_eq!(client.answer().body, b"ok", "{request:?}");
    seen
}

#[test]
fn line_08_a_request_without_host_goes_on_with_the_servers_own_name() {
    // nginx sends the name that its file gives the servers, haproxy sends none.
    let bed = Testbed::drip("", "");
    let own = bed.origin.address.to_string();
    for request in [
        "GET /old HTTP/1.0\r\n\r\n",
        "GET /old?x=1 HTTP/1.0\r\nX-A: 1\r\nConnection: keep-alive\r\n\r\n",
        "POST /old HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello",
        "HEAD /old HTTP/1.0\r\n\r\n",
    ] {
        let seen = bed.pass(request, LAST).seen;
        assert!(seen.line.ends_with(" HTTP/1.1"), "{request:?}: {seen:?}");
        assert!(seen.target().starts_with("/old"), "{request:?}");
        assert_eq!(seen.all("host"), [own.as_str()], "{request:?}");
    }
}

#[test]
fn line_08_a_host_that_an_old_client_does_send_stays() {
    for bed in everybody() {
        let seen = bed.seen("GET / HTTP/1.0\r\nHost: old.example:81\r\n\r\n");
        assert_eq!(seen.all("host"), ["old.example:81"]);
    }
    let bed = Testbed::drip("", "");
    let seen = bed.seen("GET http://a.example/x HTTP/1.0\r\n\r\n");
    assert_eq!(seen.all("host"), ["a.example"]);
    assert_eq!(seen.target(), "/x");
}

#[test]
fn line_08_the_servers_own_name_is_that_of_the_server_that_is_asked() {
    let origin = RawOrigin::start();
    let port = origin.address.port();
    let (own, named) = (format!("127.0.0.1:{port}"), format!("localhost:{port}"));
    // An address that refuses connections.
    let refuses = free_address();
    let two = format!("{refuses}\", \"http://{own}");
    for (servers, more, expected) in [
        (&named, "", &*named),
        (&two, "", &*own),
        (&own, "host = \"app.example\"", "app.example"),
        (&own, "host = \"origin\"", &*own),
    ] {
        let servers = format!("servers = [\"http://{servers}\"]");
        let file = forwarding(&[], more).replace("servers = []", &servers);
        let seen = seen_by(&origin, &file, "GET / HTTP/1.0\r\n\r\n");
        assert_eq!(seen.all("host"), [expected], "{servers} {more}");
    }
}

#[test]
fn line_08_behind_a_socket_file_it_is_localhost() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.sock");
    let _origin = Origin::at_unix(&path, |exchange| {
        let host = exchange.field("host").map(ToOwned::to_owned);
        exchange.reply(host.unwrap_or_default().as_bytes())
    });
    let server = format!("servers = [\"unix:{}\"]", path.display());
    let gateway = Gateway::start(&forwarding(&[], "").replace("servers = []", &server));
    let received = ask(gateway.address(), "GET / HTTP/1.0\r\n\r\n");
    assert_eq!(received.body, b"localhost");
}

#[test]
fn line_08_a_request_without_host_fits_no_route_that_has_one() {
    let bed = Testbed::limited_drip("", "", "", "host = \"localhost\"");
    assert_eq!(bed.ask("GET / HTTP/1.0\r\n\r\n").answer().status(), 404);
}

#[test]
fn line_13_a_client_of_http_1_0_that_asks_for_it_keeps_its_connection() {
    for bed in everybody() {
        for keep in ["keep-alive", "Keep-Alive", "x, keep-alive"] {
            if bed.who == "nginx" && keep.starts_with('x') {
                // haproxy looks only for the single word.
                continue;
            }
            let request = format!("GET / HTTP/1.0\r\nHost: test\r\nConnection: {keep}\r\n\r\n");
            let mut client = bed.ask(&request);
            for nth in 0..3 {
                let mut origin = bed.origin.accept();
                origin.head();
                origin.send(ok_with(&format!("X-Nth: {nth}\r\nConnection: close\r\n")));
                let received = client.answer();
                assert_eq!(received.field("x-nth"), Some(&*nth.to_string()));
                let says = received.field("connection").unwrap_or_default();
                assert!(says.eq_ignore_ascii_case("keep-alive"), "{received:?}");
                client.send(&request);
            }
            let mut origin = bed.origin.accept();
            origin.head();
            origin.send(LAST);
            assert_eq!(client.answer().body, b"ok");
        }
    }
}

#[test]
fn line_13_an_http_1_0_client_never_gets_chunks_and_is_closed_without_a_length() {
    for bed in nginx_and_drip() {
        for answer in [
            "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        ] {
            for lines in ["", "Connection: keep-alive\r\n"] {
                let request = format!("GET / HTTP/1.0\r\nHost: test\r\n{lines}\r\n");
                let mut passed = bed.pass(request, answer);
                drop(passed.origin);
                let received = passed.client.head();
                let is_framed = received.has("content-length") || received.has("transfer-encoding");
                assert!(!is_framed, "{received:?}");
                let says = received.field("connection").unwrap_or_default();
                assert!(!says.eq_ignore_ascii_case("keep-alive"));
                let end = passed.client.end();
                assert_eq!(end, (b"hello".to_vec(), End::Closed));
            }
        }
    }
}

#[test]
fn line_13_the_last_word_on_a_connection_is_close() {
    for bed in everybody() {
        for head in [
            "HTTP/1.1\r\nHost: test\r\nConnection: close\r\n",
            "HTTP/1.1\r\nHost: test\r\nConnection: Close\r\n",
            "HTTP/1.0\r\nHost: test\r\nConnection: close\r\n",
        ] {
            let mut passed = bed.pass(format!("GET / {head}\r\n"), OK);
            let received = passed.client.answer();
            assert_eq!(received.body, b"ok", "{head:?}");
            let end = passed.client.end();
            assert_eq!(end, (Vec::new(), End::Closed), "{head:?}");
        }
    }
    // Both words, and the option among others (RFC 9112, section 9.3).
    let bed = Testbed::drip("", "");
    for head in [
        "HTTP/1.1\r\nHost: test\r\nConnection: keep-alive, close\r\n",
        "HTTP/1.1\r\nHost: test\r\nConnection: close\r\nConnection: keep-alive\r\n",
        "HTTP/1.0\r\nHost: test\r\nConnection: keep-alive\r\nConnection: close\r\n",
    ] {
        let mut passed = bed.pass(format!("GET / {head}\r\n"), OK);
        assert_eq!(passed.client.answer().body, b"ok", "{head:?}");
        assert_eq!(passed.client.end(), (Vec::new(), End::Closed), "{head:?}");
    }
}

#[test]
fn line_13_what_is_pipelined_behind_the_last_request_is_not_read() {
    for bed in each([|| Testbed::nginx(""), || Testbed::drip("", "")]) {
        let request = "GET /1 HTTP/1.0\r\nHost: test\r\n\r\nGET /2 HTTP/1.0\r\nHost: test\r\n\r\n";
        let mut passed = bed.pass(request, OK);
        assert_eq!(passed.client.answer().body, b"ok");
        assert_eq!(passed.client.end().0, b"");
        drop(passed.origin);
        let more = bed.origin.accept_within(Duration::from_millis(50));
        assert!(more.is_none(), "the second request is not forwarded");
    }
}
