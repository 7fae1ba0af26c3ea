//! Tests of a request's id: towards the origin, in the response, in the log, and in pages.

use std::io;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::support::{Answer, Exchange, Gateway, Origin, fetch_with, http2, one_origin};

/// Values of the id field that an origin received.
type Sent = Arc<Mutex<Vec<Vec<String>>>>;

/// Starts an origin that has its own id.
fn origin() -> (Origin, Sent) {
    let sent = Sent::default();
    let seen = Arc::clone(&sent);
    let origin = Origin::answering(move |exchange: &mut Exchange| -> io::Result<()> {
        let fields = exchange.head.fields.iter();
        let ids = fields.filter(|(name, _)| name.replace('_', "-").contains("request-id"));
        let ids = ids.map(|(_, value)| value.clone()).collect();
        seen.lock().expect("no panic").push(ids);
        exchange.send(b"HTTP/1.1 200 OK\r\nX-Request-Id: own\r\nContent-Length: 2\r\n\r\nok")
    });
    (origin, sent)
}

fn gateway(origin: &Origin, server: &str) -> Gateway {
    let pages = [
        ("a.html", "<p title={{request_id}}>{{request_id}}</p>"),
        ("a.json", "{ \"id\": \"{{request_id}}\" }"),
    ];
    let log = "[log]\naccess = \"access.log\"\nformat = \"json\"\n";
    let file = one_origin(origin.address, &format!("{server}\n{log}"), "");
    let refused = "[[routes]]\npath = \"/refused\"\nrefuse = 503\n\
                   pages = { \"503\" = { html = \"a.html\", json = \"a.json\" } }\n";
    Gateway::start_beside(&pages, &format!("{file}{refused}"))
}

/// Returns all values of the field in a response.
fn ids(answer: &Answer) -> Vec<&str> {
    answer.fields("x-request-id")
}

/// Returns the only value.
fn id(answer: &Answer) -> String {
    let ids = ids(answer);
    assert_eq!(ids.len(), 1, "{ids:?}");
    ids[0].to_owned()
}

/// Returns the sorted ids in the log, once it has this many lines.
fn logged(gateway: &Gateway, lines: usize) -> Vec<Option<String>> {
    let lines = gateway.access_log(lines).into_iter();
    let mut ids: Vec<_> = lines
        .map(|line| line["request_id"].as_str().map(str::to_owned))
        .collect();
    ids.sort();
    ids
}

fn is_uuid_of_version_7(id: &str) -> bool {
    let parts: Vec<&str> = id.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    lengths == [8, 4, 4, 4, 12]
        && id
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
        && parts[2].starts_with('7')
        && parts[3].starts_with(['8', '9', 'a', 'b'])
}

#[test]
fn an_id_is_made_and_the_origin_the_client_and_the_log_get_the_same() {
    let (origin, sent) = origin();
    let gateway = gateway(&origin, "request_id = \"X-Request-ID\"");
    // No client is trusted, so its own id is ignored in any spelling.
    let answers = [
        ("/", ""),
        ("/", "X-Request-Id: mine\r\nX_Request_Id: mine\r\n"),
        ("/refused", "x-request-id: mine\r\n"),
    ];
    let answers = answers.map(|(path, fields)| fetch_with(gateway.address(), path, fields));
    let made: Vec<String> = answers.iter().map(id).collect();
    assert!(made.iter().all(|id| is_uuid_of_version_7(id)), "{made:?}");
    let is_sorted = made[0][..13] <= made[2][..13];
    assert!(is_sorted, "ids sort by their time: {made:?}");
    assert_ne!(made[0], made[1]);
    let sent = sent.lock().expect("no panic").clone();
    assert_eq!(sent, [[made[0].clone()], [made[1].clone()]]);
    assert_eq!(answers[2].text(), format!("<p title={0}>{0}</p>", made[2]));
    let mut expected: Vec<Option<String>> = made.into_iter().map(Some).collect();
    expected.sort();
    assert_eq!(logged(&gateway, 3), expected);

    let over_http2 = id(&http2::get(gateway.address(), &[]));
    assert!(is_uuid_of_version_7(&over_http2), "{over_http2}");
}

#[test]
fn a_trusted_peers_id_is_taken_if_it_is_one_and_escaped_in_pages() {
    let (origin, sent) = origin();
    let trusting = "request_id = \"x-request-id\"\ntrusted_proxies = [\"127.0.0.1\"]";
    let gateway = gateway(&origin, trusting);
    let ask = |path, fields: &str| fetch_with(gateway.address(), path, fields);
    assert_eq!(id(&ask("/", "X-Request-ID: abc/1\r\n")), "abc/1");
    assert_eq!(*sent.lock().expect("no panic"), [["abc/1"]]);
    let long = format!("x-request-id: {}\r\n", "a".repeat(129));
    let twice = "x-request-id: a\r\nx-request-id: b\r\n";
    for wrong in ["", &long, "x-request-id: a b\r\n", twice] {
        let id = id(&ask("/", wrong));
        assert!(is_uuid_of_version_7(&id), "{wrong}: {id}");
    }
    let evil = "<script>alert(\"1\\\")</script>";
    let fields = format!("x-request-id: {evil}\r\n");
    let html = ask("/refused", &fields);
    let escaped = "&#60;script&#62;alert&#40;&#34;1&#92;&#34;&#41;&#60;/script&#62;";
    assert_eq!(html.text(), format!("<p title={escaped}>{escaped}</p>"));
    assert_eq!(id(&html), evil);
    let json = ask("/refused", &format!("{fields}Accept: application/json\r\n"));
    let json: Value = serde_json::from_str(&json.text()).expect("JSON");
    assert_eq!(json["id"], evil);
    assert!(logged(&gateway, 7).contains(&Some(evil.to_owned())));
}

#[test]
fn without_the_field_nothing_is_made_and_clients_and_origins_fields_pass() {
    let (origin, sent) = origin();
    let gateway = gateway(&origin, "");
    let ask = |path| fetch_with(gateway.address(), path, "x-request-id: mine\r\n");
    assert_eq!(ids(&ask("/")), ["own"]);
    assert_eq!(*sent.lock().expect("no panic"), [["mine"]]);
    let refused = ask("/refused");
    assert_eq!(ids(&refused), [""; 0]);
    assert_eq!(refused.text(), "<p title=></p>");
    assert_eq!(logged(&gateway, 2), [None, None]);
}
