//! Tests of header fields that a route sets or removes in requests and responses.

use std::io;
use std::thread;

use crate::support::{
    self, Exchange, Gateway, Origin, Raw, RawOrigin, eventually, exchange, fetch_with, http2,
    one_h2c_origin, one_origin, zone,
};

/// Starts an origin whose responses have these lines.
fn origin(lines: &'static str) -> Origin {
    Origin::answering(move |exchange: &mut Exchange| -> io::Result<()> {
        exchange.send(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n{lines}\r\nok"
        ))
    })
}

/// Part of a file with an origin that does not exist.
const DEAD: &str = "[origins.dead]\nservers = [\"http://127.0.0.1:1\"]\n";

fn file(origin: &Origin, route: &str) -> String {
    let limited = format!("limits = [{{ zone = \"z\", burst = 0 }}]\n{route}");
    let zones = DEAD.to_owned() + &zone("z", "$arg_key", "1r/m");
    let file = support::file(origin, &zones, &[("/", &limited)]);
    format!(
        "{file}\n[[routes]]\npath = \"/dead\"\norigin = \"dead\"\n{route}\n\
         [[routes]]\npath = \"/refused\"\nrefuse = 403\nanswer_headers = {{ x-own = \"refused\" }}\n"
    )
}

/// Returns all values of a field.
fn values<'a>(fields: &'a [(String, String)], name: &str) -> Vec<&'a str> {
    let named = fields.iter().filter(|(found, _)| found == name);
    named.map(|(_, value)| value.as_str()).collect()
}

#[test]
fn own_answers_have_the_fields_of_their_route_and_the_origins_do_not() {
    let origin = origin("");
    let gateway = Gateway::start(&format!(
        "max_body_size = 10\n{}",
        file(
            &origin,
            "answer_headers = { \"Access-Control-Allow-Origin\" = \"*\", content-type = \"application/json\" }\nreject_body = \"{}\"",
        )
    ));
    let mut client = gateway.connect();
    let answer = client.fetch("/?key=a");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.field("access-control-allow-origin"), None);
    for (head, status) in [
        ("GET /?key=a HTTP/1.1\r\n", 429),
        ("GET /dead HTTP/1.1\r\n", 502),
        ("POST / HTTP/1.1\r\nContent-Length: 11\r\n", 413),
    ] {
        let answer = exchange(gateway.address(), format!("{head}Host: a\r\n\r\n"));
        assert_eq!(answer.status, status, "{head}");
        let fields = &answer.head.fields;
        assert_eq!(values(fields, "access-control-allow-origin"), ["*"]);
        assert_eq!(values(fields, "content-type"), ["application/json"]);
        assert_eq!(values(fields, "date").len(), 1);
        assert_eq!(values(fields, "content-length").len(), 1);
        assert_eq!(answer.field("retry-after").is_some(), status == 429);
    }
    let mut client = gateway.connect();
    let answer = client.fetch("/refused/x");
    assert_eq!((answer.status, answer.text()), (403, "Forbidden\n".into()));
    assert_eq!(answer.field("x-own"), Some("refused"));
    // A refused request counts for its route, and goes to no origin.
    assert_eq!(origin.arrivals().len(), 1);
    eventually("it is counted", || gateway.requests("/refused", "403") == 1);
}

#[test]
fn all_responses_have_the_fields_of_their_route_instead_of_the_origins() {
    let origin = origin(
        "Server: app\r\nX-A: one\r\nx-a: two\r\nX-B: three\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n",
    );
    let gateway = Gateway::start(&file(
        &origin,
        "response_headers = { server = false, X-A = \"all\", x-ratelimit-limit = \"7\" }\nanswer_headers = { x-a = \"own\" }",
    ));
    let mut client = gateway.connect();
    for (nth, (status, x_a)) in [(200, "all"), (429, "own")].into_iter().enumerate() {
        let answer = client.fetch("/?key=a");
        let fields = &answer.head.fields;
        assert_eq!(answer.status, status);
        assert_eq!(values(fields, "x-a"), [x_a]);
        assert_eq!(values(fields, "server"), [""; 0]);
        assert_eq!(values(fields, "x-ratelimit-limit"), ["7"]);
        assert_eq!(values(fields, "x-ratelimit-remaining"), ["0"]);
        if nth == 0 {
            assert_eq!(values(fields, "x-b"), ["three"]);
            assert_eq!(values(fields, "set-cookie"), ["a=1", "b=2"]);
        }
    }
}

#[test]
fn the_origin_gets_the_fields_of_the_route_instead_of_the_clients() {
    let origin = RawOrigin::start();
    let file = one_origin(origin.address, "", "");
    let fields = "request_headers = { X-Version = \"2\", cookie = false, X-User = \"gateway\", x-forwarded-proto = \"https\", x-forwarded-host = false }\n";
    let gateway = Gateway::start(&(file + fields));
    let mut client = Raw::connect(gateway.address());
    client.send(
        b"POST /a HTTP/1.1\r\nHost: a\r\nCookie: a=1\r\nX-VERSION: 1\r\nx_user: me\r\nX-User: me\r\nX-Users: us\r\n\
          Connection: x-version\r\nTransfer-Encoding: chunked\r\nTrailer: x-user\r\n\r\n1\r\na\r\n0\r\nX-User: me\r\nX-Sum: 1\r\n\r\n",
    );
    let request = origin.accept().request();
    for (name, expected) in [
        ("x-version", &["2"][..]),
        ("cookie", &[]),
        ("x-user", &["gateway"]),
        ("x_user", &[]),
        ("x-users", &["us"]),
        ("x-forwarded-proto", &["https"]),
        ("x-forwarded-host", &[]),
        ("x-forwarded-for", &["127.0.0.1"]),
        ("host", &["a"]),
    ] {
        assert_eq!(values(&request.fields, name), expected, "{name}");
    }
    assert_eq!(request.trailers, [("x-sum".to_owned(), "1".to_owned())]);
}

/// No trailer of a response has a name that the route changes, over HTTP/1 and HTTP/2.
#[test]
fn no_trailer_of_a_response_has_a_name_that_the_route_changes() {
    let origin = RawOrigin::start();
    let file = one_origin(origin.address, "", "");
    let fields = "response_headers = { x-secret = false, X-Own = \"gateway\" }\n";
    let gateway = Gateway::start(&(file + fields));
    let reply = || {
        let mut at_origin = origin.accept();
        at_origin.request();
        at_origin.send(
            "HTTP/1.1 200 OK\r\nConnection: close\r\nX-Secret: 1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\
             X-Sum: 1\r\nX-Secret: 2\r\nx_secret: 3\r\nx-own: origin\r\n\r\n",
        );
    };
    let check = |fields: &[(String, String)], trailers: &[(String, String)]| {
        assert_eq!(trailers, [("x-sum".to_owned(), "1".to_owned())]);
        assert_eq!(values(fields, "x-secret"), [""; 0]);
        assert_eq!(values(fields, "x-own"), ["gateway"]);
    };
    let mut client = Raw::connect(gateway.address());
    client.send("GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: TE\r\n\r\n");
    reply();
    let received = client.answer();
    assert_eq!(received.body, b"hello");
    check(&received.fields, &received.trailers);
    let at = gateway.address();
    let asking = thread::spawn(move || http2::fetch(at, "GET", "/", &[("te", "trailers")], b""));
    reply();
    let received = asking.join().expect("no panic");
    let answer = &received.answer;
    assert_eq!((answer.status, &*answer.body), (200, &b"hello"[..]));
    check(&answer.head.fields, &received.trailers);
}

/// An HTTP/2 origin gets the path and the fields of the route.
///
/// The origin is another gateway, which forwards what it gets.
#[test]
fn an_origin_by_http_2_gets_the_path_and_the_fields_of_the_route() {
    let origin = Origin::answering(|exchange: &mut Exchange| -> io::Result<()> {
        let received = ["x-user", "cookie", "x-other"].map(|name| exchange.field(name));
        let received = format!("{} {received:?}", exchange.target());
        exchange.reply(received.as_bytes())
    });
    let inner = Gateway::start(&one_origin(origin.address, "", ""));
    let file = one_h2c_origin(inner.address(), "", "").replace("path = \"/\"", "path = \"/v1/\"");
    let fields = "strip_prefix = \"/v1\"\nadd_prefix = \"/app\"\nrequest_headers = { X-User = \"gateway\", cookie = false }\n";
    let gateway = Gateway::start(&(file + fields));
    let fields = "Cookie: a=1\r\nx-user: me\r\nX-Other: 1\r\n";
    let received = fetch_with(gateway.address(), "/v1/a/%2e%2e/b%20c?d=/v1", fields);
    let expected = "/app/b%20c?d=/v1 [Some(\"gateway\"), None, Some(\"1\")]";
    assert_eq!(received.text(), expected);
}

/// A refused gRPC call has the fields of its route, and keeps those of the protocol.
#[test]
fn a_refused_call_of_grpc_has_the_fields_of_its_route() {
    let gateway = Gateway::start(
        "[origins.app]\nservers = [\"http://127.0.0.1:1\"]\n[[routes]]\npath = \"/\"\nrefuse = 403\n\
         answer_headers = { X-Own = \"a\", Content-Type = \"text/html\", grpc-status = \"0\" }\n",
    );
    let call = [("content-type", "application/grpc"), ("te", "trailers")];
    let received = http2::fetch(gateway.address(), "POST", "/a.B/C", &call, b"").answer;
    for (name, value) in [
        ("content-type", "application/grpc"),
        ("grpc-status", "7"),
        ("x-own", "a"),
    ] {
        assert_eq!(values(&received.head.fields, name), [value], "{received:?}");
    }
}

#[test]
fn a_family_of_limit_fields_comes_from_one_side() {
    let origin = origin(
        "X-RateLimit-Limit: 5000\r\nX-RateLimit-Reset: 1800\r\nx-ratelimit-used: 1\r\nX-Rate-Limit-Limit: 5000\r\n\
         RateLimit: \"api\";r=0;t=1800\r\nRateLimit-Policy: \"api\";q=5000\r\nRateLimit-Reset: 1800\r\n",
    );
    let (own, drafts) = (
        "x-ratelimit-limit x-ratelimit-remaining x-ratelimit-retry-after",
        "ratelimit ratelimit-policy",
    );
    let theirs = "x-rate-limit-limit x-ratelimit-limit x-ratelimit-reset x-ratelimit-used";
    let both = "headers = [\"x-ratelimit\", \"ratelimit\"]";
    for (headers, expected) in [
        ("", format!("{drafts} ratelimit-reset {own}")),
        ("headers = [\"ratelimit\"]", format!("{drafts} {theirs}")),
        (both, format!("{drafts} {own}")),
        ("headers = []", format!("{drafts} ratelimit-reset {theirs}")),
    ] {
        let gateway = Gateway::start(&file(&origin, headers));
        let answer = gateway.fetch("/?key=a");
        let names = answer
            .head
            .fields
            .iter()
            .map(|it| it.0.to_ascii_lowercase());
        let mut names: Vec<_> = names.filter(|name| name.contains("rate")).collect();
        names.sort();
        assert_eq!(names.join(" "), expected, "{headers}");
    }
}

#[test]
fn fields_for_the_client_may_have_variables_and_never_a_line_of_the_client() {
    let origin = origin("X-A: origin\r\n");
    let gateway = Gateway::start(&file(
        &origin,
        "response_headers = { x-a = \"$arg_a|$host\", x-empty = \"$http_x_none\", x-price = \"5 $$\" }\n\
         answer_headers = { access-control-allow-origin = \"$http_origin\", x-price = \"$request_method\" }",
    ));
    let mut client = gateway.connect();
    for (status, price) in [(200, "5 $"), (429, "GET")] {
        client.send(
            b"GET /?key=a&a=1%0d%0aSet-Cookie:%20b=2 HTTP/1.1\r\nHost: A.test:80\r\nOrigin: https://b.test\r\n\r\n",
        );
        let answer = client.answer();
        let fields = &answer.head.fields;
        assert_eq!(answer.status, status);
        assert_eq!(values(fields, "x-a"), ["1  Set-Cookie: b=2|a.test"]);
        assert_eq!(values(fields, "x-empty"), [""; 0]);
        assert_eq!(values(fields, "x-price"), [price]);
        assert_eq!(values(fields, "set-cookie"), [""; 0]);
        let cors = (status == 429).then_some("https://b.test");
        assert_eq!(answer.field("access-control-allow-origin"), cors);
    }
}
