//! Tests of pages that replace the gateway's short texts and some responses of the origin.

mod bed;

use std::fs;

use bed::failing;

use crate::support::frames::{self, DATA, END_STREAM, Frames, RST_STREAM, frame, head};
use crate::support::{
    FrameOrigin, Gateway, Origin, SOON, assert_contains, eventually, exchange, fetch_with, http2,
    now, one_h2c_origin, one_origin,
};

/// Returns routes with drip's own statuses: 429 for a second request, 502, 503, 413.
fn file(origin: &Origin, pages: &str) -> String {
    format!(
        "max_body_size = 10\n[origins.app]\nservers = [\"http://{}\"]\n\
         [origins.dead]\nservers = [\"http://127.0.0.1:1\"]\n\
         [zones.z]\nkey = \"$arg_key\"\nrate = \"1r/h\"\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{{ zone = \"z\", burst = 0 }}]\n{pages}\n\
         [[routes]]\npath = \"/dead\"\norigin = \"dead\"\n{pages}\n\
         [[routes]]\npath = \"/refused\"\nrefuse = 503\n{}\n",
        origin.address,
        pages
            .lines()
            .filter(|line| line.starts_with("pages"))
            .collect::<String>()
    )
}

#[test]
fn each_status_has_its_page_with_its_type_and_values() {
    let origin = Origin::start();
    let files = [
        (
            "busy.HTML",
            "<p>{{status}}: in {{ retry_after }} s, {{other}}</p>",
        ),
        ("down.json", "[{{status}}, \"{{retry_after}}\"]"),
        ("late.svg", "<svg/>"),
        ("large", "<{{request_id}}>"),
    ];
    let pages = "pages = { \"429\" = \"busy.HTML\", \"5xx\" = \"down.json\", \"503\" = \"late.svg\", \"4xx\" = \"large\" }\n\
                 reject_body = \"unused\"";
    let gateway = Gateway::start_beside(&files, &file(&origin, pages));
    assert_eq!(gateway.fetch("/?key=a").status, 200);
    let busy = gateway.fetch("/?key=a");
    let after = busy.number("retry-after");
    let large = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n";
    let html = format!("<p>429: in {after} s, {{{{other}}}}</p>");
    for (answer, status, text, media) in [
        (busy, 429, &*html, "text/html; charset=utf-8"),
        (
            gateway.fetch("/dead"),
            502,
            "[502, \"\"]",
            "application/json",
        ),
        (gateway.fetch("/refused"), 503, "<svg/>", "image/svg+xml"),
        (
            exchange(gateway.address(), large),
            413,
            "<>",
            "text/plain; charset=utf-8",
        ),
    ] {
        assert_eq!((answer.status, &*answer.text()), (status, text));
        assert_eq!(answer.field("content-type"), Some(media));
        assert_eq!(answer.field("vary"), None);
    }
    // The origin's own responses stay unchanged.
    assert_eq!(gateway.fetch("/?key=b").text(), "ok");
}

#[test]
fn accept_chooses_between_html_and_json() {
    let origin = Origin::start();
    let files = [
        ("a.html", "<p>no</p>"),
        ("a.json", "[]"),
        ("busy.xml", "<busy/>"),
    ];
    let pages =
        "pages = { \"502\" = { html = \"a.html\", json = \"a.json\" }, \"429\" = \"busy.xml\" }";
    let gateway = Gateway::start_beside(&files, &file(&origin, pages));
    let browser = "Accept: text/html,application/xml;q=0.9,*/*;q=0.8\r\n";
    let html = ("<p>no</p>", "text/html; charset=utf-8");
    let json = ("[]", "application/json");
    for (accept, (text, media)) in [
        ("", html),
        ("Accept: */*\r\n", html),
        (browser, html),
        ("Accept: application/json, */*\r\n", json),
    ] {
        let answer = fetch_with(gateway.address(), "/dead", accept);
        assert_eq!((answer.status, &*answer.text()), (502, text), "{accept}");
        assert_eq!(answer.field("content-type"), Some(media), "{accept}");
        assert_eq!(answer.field("vary"), Some("Accept"));
    }
    assert_eq!(gateway.fetch("/?key=a").status, 200);
    let busy = gateway.fetch("/?key=a");
    assert_eq!((busy.status, busy.text()), (429, "<busy/>".to_owned()));
    assert_eq!(busy.field("content-type"), Some("text/xml; charset=utf-8"));
    let refused = gateway.fetch("/refused").text();
    assert_eq!(refused, "Service Unavailable\n");
}

#[test]
fn a_long_page_arrives_whole_over_both_protocols_and_head_has_its_length() {
    let origin = Origin::start();
    let numbers: Vec<String> = (0..30_000).map(|nth| nth.to_string()).collect();
    let page = format!("{{{{status}}}}{}", numbers.join(","));
    let text = file(&origin, "pages = { \"5xx\" = \"down.txt\" }");
    let gateway = Gateway::start_beside(&[("down.txt", &page)], &text);
    let expected = page.replace("{{status}}", "502");
    let mut client = gateway.connect();
    client.send(b"HEAD /dead HTTP/1.1\r\nHost: a\r\n\r\n");
    let head = client.head();
    assert_eq!(head.length(), Some(expected.len() as u64));
    // The next response follows directly.
    for _ in 0..2 {
        let answer = client.fetch("/dead");
        assert_eq!(answer.head.length(), Some(expected.len() as u64));
        assert!(answer.text() == expected, "another page");
    }
    let answer = http2::fetch(gateway.address(), "GET", "/dead", &[], b"").answer;
    assert!(answer.text() == expected, "another page over HTTP/2");
}

#[test]
fn a_page_is_read_again_when_it_is_saved_and_stays_while_it_cannot_be_read() {
    let origin = Origin::start();
    let text = file(&origin, "pages = { \"5xx\" = \"down.html\" }");
    let gateway = Gateway::start_beside(&[("down.html", "first")], &text);
    let page = gateway.site.folder().join("down.html");
    let shown = || gateway.fetch("/dead").text();
    assert_eq!(shown(), "first");
    fs::write(&page, "second").expect("a file");
    eventually("it is in force", || shown() == "second");
    gateway.wait_for_line("by=\"page file\" what=\"page file down.html content changed");
    // A file that cannot be used changes nothing, and the log names the remedy.
    fs::write(&page, vec![b'x'; 256 * 1024 + 1]).expect("a file");
    let line = gateway.wait_for_line("down.html cannot be read: it is larger than 256KB");
    assert_contains!(line, "name a file of UTF-8 text of at most 256KB");
    fs::remove_file(&page).expect("it is there");
    gateway.wait_for_line("down.html cannot be read: No such file");
    assert_eq!(shown(), "second");
    fs::write(&page, "third").expect("a file");
    eventually("it is in force", || shown() == "third");
}

#[test]
fn a_call_of_grpc_gets_its_status_and_no_page() {
    let origin = Origin::start();
    let text = file(&origin, "pages = { \"5xx\" = \"down.html\" }");
    let gateway = Gateway::start_beside(&[("down.html", "page")], &text);
    let mut client = Frames::connect(gateway.address());
    let fields = frames::call("/dead");
    client
        .send(head(1, END_STREAM, &fields))
        .expect("it is read");
    let answer = client.next().expect("a frame");
    assert_eq!((answer.status(), answer.ends_stream()), (Some(200), true));
}

#[test]
fn a_page_replaces_the_origins_own_502_to_504_and_keeps_or_closes_its_connection() {
    let origin = failing();
    let fields =
        "origin_pages = true\npages = { \"5xx\" = \"down.html\", \"4xx\" = \"down.html\" }\n";
    let text = one_origin(origin.address, "workers = 1\n", "") + fields;
    let page = ("down.html", "<p>{{status}} {{retry_after}}</p>");
    let gateway = Gateway::start_beside(&[page], &text);
    let mut client = gateway.connect();
    for target in ["/502", "/503/chunked", "/504", "/503"] {
        let answer = client.fetch(target);
        let status = &target[1..4];
        assert_eq!(answer.status.to_string(), status);
        assert_eq!(answer.text(), format!("<p>{status} 7</p>"), "{target}");
        assert_eq!(answer.field("retry-after"), Some("7"), "{target}");
        assert_eq!(answer.field("x-own"), None, "{target}");
    }
    client.send(b"HEAD /503 HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.head().length(), Some("<p>503 7</p>".len() as u64));
    // All of these used one connection.
    assert!(origin.arrivals().iter().all(|it| it.connection == 0));
    // Other statuses belong to the application.
    for target in ["/500", "/404", "/200"] {
        let answer = client.fetch(target);
        assert_eq!(answer.text(), "own", "{target}");
        assert_eq!(answer.field("x-own"), Some("yes"), "{target}");
    }
    for (nth, target) in (1..).zip(["/503/slow", "/502/long", "/503/slow"]) {
        let began = now();
        client.get(target);
        let expected = format!("<p>{} 7</p>", &target[1..4]);
        assert_eq!(client.answer().text(), expected);
        let took = began.elapsed();
        assert!(took < SOON, "the client waited for the origin's body");
        assert_eq!(client.fetch("/504").text(), "<p>504 7</p>");
        let arrivals = origin.arrivals();
        assert_eq!(arrivals[arrivals.len() - 1].connection, nth, "{target}");
    }
    assert!(gateway.requests("/", "503") >= 4);
}

#[test]
fn over_http2_a_replaced_response_ends_its_stream_and_not_its_connection() {
    let origin = FrameOrigin::start();
    let fields = "origin_pages = true\npages = { \"503\" = \"down.html\" }\n";
    let text = one_h2c_origin(origin.address, "workers = 1\n", "") + fields;
    let gateway = Gateway::start_beside(&[("down.html", "page")], &text);
    let begin = |stream| head(stream, 0, &[(":status", "503")]);
    // One body is complete at once, and one never ends: its stream is reset.
    origin.next(move |to, stream| {
        to.send(begin(stream))?;
        to.send(frame(DATA, END_STREAM, stream, b"own"))
    });
    origin.next(move |to, stream| {
        to.send(begin(stream))?;
        to.send(frame(DATA, 0, stream, b"own"))?;
        let next = to.next()?;
        assert_eq!((next.kind, next.stream), (RST_STREAM, stream));
        Ok(())
    });
    for _ in 0..2 {
        let answer = gateway.fetch("/");
        assert_eq!((answer.status, answer.text()), (503, "page".to_owned()));
    }
    assert_eq!(gateway.fetch("/").text(), "ok");
    assert_eq!(origin.connections(), 1);
}

#[test]
fn without_origin_pages_the_origins_responses_pass_unchanged() {
    let origin = failing();
    let text = one_origin(origin.address, "", "") + "pages = { \"5xx\" = \"down.html\" }\n";
    let gateway = Gateway::start_beside(&[("down.html", "page")], &text);
    let answer = gateway.fetch("/503");
    assert_eq!((answer.status, answer.text()), (503, "own".to_owned()));
    assert_eq!(answer.field("x-own"), Some("yes"));
}
