//! The id of a request: on the way to the origin, in the response, in the log, and in pages.

use std::fs;
use std::io;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::support::{
    Answer, Exchange, Gateway, Origin, Site, eventually, fetch_with, http2, whole_lines,
};

/// The values of the field with the id that an origin was sent.
type Sent = Arc<Mutex<Vec<Vec<String>>>>;

/// An origin that has an id of its own.
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
    let site = Site::new();
    let page = |name: &str, text: &str| fs::write(site.folder().join(name), text).expect("a file");
    page("a.html", "<p title={{request_id}}>{{request_id}}</p>");
    page("a.json", "{ \"id\": \"{{request_id}}\" }");
    site.write(&format!(
        "{server}\n[log]\naccess = \"access.log\"\nformat = \"json\"\n\
         [origins.app]\nservers = [\"http://{}\"]\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n\
         [[routes]]\npath = \"/refused\"\nrefuse = 503\n\
         pages = {{ \"503\" = {{ html = \"a.html\", json = \"a.json\" }} }}\n",
        origin.address
    ));
    let gateway = Gateway::run(site);
    gateway.wait_until_ready();
    gateway
}

/// All values of the field in a response.
fn ids(answer: &Answer) -> Vec<&str> {
    let fields = answer.head.fields.iter();
    let named = fields.filter(|(name, _)| name.eq_ignore_ascii_case("x-request-id"));
    named.map(|(_, value)| value.as_str()).collect()
}

/// The only one.
fn id(answer: &Answer) -> String {
    let ids = ids(answer);
    assert_eq!(ids.len(), 1, "{ids:?}");
    ids[0].to_owned()
}

/// The ids in the log, once it has so many lines, in their alphabetical order.
fn logged(gateway: &Gateway, lines: usize) -> Vec<Option<String>> {
    let path = gateway.site.folder().join("access.log");
    let read = || whole_lines(&path);
    eventually("all is logged", || read().lines().count() == lines);
    let text = read();
    let lines = text.lines().map(|line| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        line["request_id"].as_str().map(str::to_owned)
    });
    let mut ids: Vec<Option<String>> = lines.collect();
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
    // Nobody is trusted, so a client's own id counts as little as one in another spelling.
    let answers = [
        fetch_with(gateway.address(), "/", ""),
        fetch_with(
            gateway.address(),
            "/",
            "X-Request-Id: mine\r\nX_Request_Id: mine\r\n",
        ),
        fetch_with(gateway.address(), "/refused", "x-request-id: mine\r\n"),
    ];
    let made: Vec<String> = answers.iter().map(id).collect();
    assert!(made.iter().all(|id| is_uuid_of_version_7(id)), "{made:?}");
    assert!(
        made[0][..13] <= made[2][..13],
        "ids sort by their time: {made:?}"
    );
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
    let gateway = gateway(
        &origin,
        "request_id = \"x-request-id\"\ntrusted_proxies = [\"127.0.0.1\"]",
    );
    assert_eq!(
        id(&fetch_with(
            gateway.address(),
            "/",
            "X-Request-ID: abc/1\r\n"
        )),
        "abc/1"
    );
    assert_eq!(*sent.lock().expect("no panic"), [["abc/1"]]);
    let long = format!("x-request-id: {}\r\n", "a".repeat(129));
    for wrong in [
        "",
        &long,
        "x-request-id: a b\r\n",
        "x-request-id: a\r\nx-request-id: b\r\n",
    ] {
        let id = id(&fetch_with(gateway.address(), "/", wrong));
        assert!(is_uuid_of_version_7(&id), "{wrong}: {id}");
    }
    let evil = "<script>alert(\"1\\\")</script>";
    let fields = format!("x-request-id: {evil}\r\n");
    let html = fetch_with(gateway.address(), "/refused", &fields);
    let escaped = "&#60;script&#62;alert&#40;&#34;1&#92;&#34;&#41;&#60;/script&#62;";
    assert_eq!(html.text(), format!("<p title={escaped}>{escaped}</p>"));
    assert_eq!(id(&html), evil);
    let json = fetch_with(
        gateway.address(),
        "/refused",
        &format!("{fields}Accept: application/json\r\n"),
    );
    let json: Value = serde_json::from_str(&json.text()).expect("JSON");
    assert_eq!(json["id"], evil);
    assert!(logged(&gateway, 7).contains(&Some(evil.to_owned())));
}

#[test]
fn without_the_field_nothing_is_made_and_clients_and_origins_fields_pass() {
    let (origin, sent) = origin();
    let gateway = gateway(&origin, "");
    assert_eq!(
        ids(&fetch_with(
            gateway.address(),
            "/",
            "x-request-id: mine\r\n"
        )),
        ["own"]
    );
    assert_eq!(*sent.lock().expect("no panic"), [["mine"]]);
    let refused = fetch_with(gateway.address(), "/refused", "x-request-id: mine\r\n");
    assert_eq!(
        (ids(&refused), refused.text()),
        (vec![], "<p title=></p>".to_owned())
    );
    assert_eq!(logged(&gateway, 2), [None, None]);
}
