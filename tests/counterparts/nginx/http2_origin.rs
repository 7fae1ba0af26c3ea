//! Compares the same nginx as an origin over HTTP/1 and over HTTP/2: responses are equal.

use std::fs;
use std::net::SocketAddr;

use tempfile::TempDir;

use crate::programs::nginx::Nginx;
use crate::support::noise;
use crate::support::{Gateway, Message, Origin, PATIENCE, Raw, free_address};

/// An nginx with files that passes `/app` to its own origin, and two gateways before it.
struct Pair {
    _app: Origin,
    _files: TempDir,
    _nginx: Nginx,
    drips: [Gateway; 2],
}

/// Starts the pair, with files, redirects, empty responses, and forwarded requests.
fn pair() -> Pair {
    let app = Origin::answering(|exchange| {
        let body = exchange.body()?;
        let sum = body
            .iter()
            .fold(7_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(*byte));
        let names = exchange.head.fields.iter().map(|it| format!("{it:?}"));
        let mut names: Vec<_> = names.collect();
        // nginx's handling of the host and of its own connection does not matter here.
        names.retain(|it| it != "(\"content-length\", \"0\")");
        names.retain(|it| !it.starts_with("(\"connection") && !it.starts_with("(\"host"));
        names.sort();
        let line = &exchange.head.first_line;
        let text = format!(
            "{line}\n{} bytes, {sum}\n{}\n",
            body.len(),
            names.join("\n")
        );
        if exchange.target().starts_with("/app/chunks") {
            let chunk = format!("{:x}\r\n{text}\r\n0\r\n\r\n", text.len());
            let head =
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Own: a\r\nX-Own: b\r\n\r\n";
            return exchange.send(format!("{head}{chunk}").as_bytes());
        }
        let is_head = line.starts_with("HEAD");
        let head = format!(
            "HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: {}\r\n\r\n",
            text.len()
        );
        exchange.send(head.as_bytes())?;
        exchange.send(if is_head { b"" } else { text.as_bytes() })
    });
    let files = TempDir::new().expect("a folder");
    fs::write(files.path().join("small.txt"), "hello, world").expect("a file");
    fs::write(files.path().join("large.bin"), noise(5 << 20)).expect("a file");
    fs::write(files.path().join("empty"), "").expect("a file");
    let (plain, http2) = (free_address(), free_address());
    let server = format!(
        "server {{ listen {plain}; listen {http2} http2; root {}; client_max_body_size 0; \
         large_client_header_buffers 8 32k; absolute_redirect off; add_header x-host $host; \
         location /app {{ proxy_pass http://origin; }} \
         location = /204 {{ return 204; }} location = /304 {{ return 304; }} \
         location = /302 {{ return 302 /small.txt; }} location = /500 {{ return 500 broken; }} \
         location = /none {{ return 200; }} }}",
        files.path().display()
    );
    let nginx = Nginx::before(app.address, &server, &[("/", "")]);
    let drip = |server: &str, address: SocketAddr| {
        Gateway::start(&format!(
            "workers = 1\nmax_header_size = \"64KB\"\n[origins.app]\nservers = [\"{server}{address}\"]\n\
             max_header_size = \"64KB\"\n[[routes]]\npath = \"/\"\norigin = \"app\"\n"
        ))
    };
    Pair {
        drips: [drip("http://", plain), drip("h2c://", http2)],
        _app: app,
        _files: files,
        _nginx: nginx,
    }
}

impl Pair {
    /// Sends the same request through both. Fails unless the responses are equal. Returns one.
    fn check(&self, method: &str, request: impl AsRef<[u8]>) -> Message {
        let request = request.as_ref();
        let [over_1, over_2] = self.drips.each_ref().map(|drip| {
            let mut client = Raw::connect(drip.address());
            let mut sender = client.sender();
            let bytes = request.to_vec();
            let sending =
                std::thread::spawn(move || std::io::Write::write_all(&mut sender, &bytes));
            let mut answer = client.try_answer_to(method, PATIENCE).expect("an answer");
            // The client may not have sent everything before the response.
            let _sent = sending.join().expect("no panic");
            answer.fields.retain(|(name, _)| name != "date");
            answer.fields.sort();
            // Only HTTP/1 has a reason, and it may differ.
            answer.line = format!("HTTP/1.1 {}", answer.status());
            answer
        });
        let shown = String::from_utf8_lossy(&request[..request.len().min(200)]);
        let (one, other) = (show(&over_1), show(&over_2));
        assert!(over_1 == over_2, "{shown:?}: {one}\nand {other}");
        over_1
    }

    fn get(&self, target: &str) -> Message {
        self.check(
            "GET",
            format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n"),
        )
    }

    fn with(&self, method: &str, target: &str, fields: &str, body: &[u8]) -> Message {
        let head = format!("{method} {target} HTTP/1.1\r\nHost: test\r\n{fields}\r\n");
        self.check(method, [head.as_bytes(), body].concat())
    }
}

fn show(message: &Message) -> String {
    let start = String::from_utf8_lossy(&message.body[..message.body.len().min(600)]).into_owned();
    format!(
        "{} {:?} {} bytes {start:?}",
        message.line,
        message.fields,
        message.body.len()
    )
}

#[test]
fn files_and_short_answers() {
    let pair = pair();
    assert_eq!(pair.get("/small.txt").body, b"hello, world");
    let body = pair.get("/large.bin").body;
    assert!(body == noise(5 << 20), "another body");
    assert_eq!(pair.get("/empty").field("content-length"), Some("0"));
    for (target, status) in [
        ("/204", 204),
        ("/304", 304),
        ("/302", 302),
        ("/500", 500),
        ("/none", 200),
        ("/404", 404),
    ] {
        assert_eq!(pair.get(target).status(), status, "{target}");
    }
    for target in ["/small.txt", "/large.bin", "/empty", "/404", "/302", "/app"] {
        let answer = pair.with("HEAD", target, "", b"");
        assert!(answer.body.is_empty(), "{target}");
    }
    let small = pair.get("/small.txt");
    let tag = small.field("etag").expect("a tag");
    for (fields, status, body) in [
        (format!("If-None-Match: {tag}\r\n"), 304, None),
        ("Range: bytes=7-\r\n".to_owned(), 206, Some(&b"world"[..])),
        ("Range: bytes=100-\r\n".to_owned(), 416, None),
    ] {
        let answer = pair.with("GET", "/small.txt", &fields, b"");
        assert_eq!(answer.status(), status, "{fields}");
        assert!(body.is_none_or(|body| answer.body == body), "{fields}");
    }
}

#[test]
fn bodies_of_requests() {
    let pair = pair();
    let large = noise(5 << 20);
    let posted = |fields: &str, body: &[u8]| pair.with("POST", "/app", fields, body);
    let length = format!("Content-Length: {}\r\n", large.len());
    let answer = posted(&length, &large);
    assert!(String::from_utf8_lossy(&answer.body).contains("5242880 bytes, "));
    assert!(!posted("Content-Length: 0\r\n", b"").body.is_empty());
    assert!(!posted("", b"").body.is_empty());
    let chunks = posted(
        "Transfer-Encoding: chunked\r\n",
        b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
    );
    assert!(String::from_utf8_lossy(&chunks.body).contains("5 bytes, "));
    // nginx accepts no trailers over HTTP/2, so `upgrade` tests them.
    posted("Transfer-Encoding: chunked\r\n", b"0\r\n\r\n");
    for method in ["PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "X-OWN"] {
        pair.with(method, "/app", "Content-Length: 2\r\n", b"ab");
        pair.with(method, "/app", "", b"");
    }
    for method in ["PUT", "POST", "DELETE", "TRACE"] {
        let answer = pair.with(method, "/small.txt", "Content-Length: 0\r\n", b"");
        assert_eq!(answer.status(), 405);
    }
}

#[test]
fn fields_both_ways() {
    let pair = pair();
    let many: Vec<_> = (0..90).map(|nth| format!("X-{nth}: {nth}\r\n")).collect();
    let large = format!("X-Large: {}\r\n", "x".repeat(12_000));
    for fields in [
        "Cookie: a=1; b=2; c=3\r\n",
        "X-Own: a\r\nx-own: b\r\nX-Empty:\r\nX-Blanks:   a  b\t\r\n",
        "Connection: x-hop, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: 5\r\n",
        "TE: gzip\r\nConnection: TE\r\n",
        "Accept: */*\r\nUser-Agent: a/1 (b; c)\r\nAccept-Encoding: br\r\n",
        "Authorization: Basic YTpi\r\nReferer: http://a/?b\r\n",
        &many.concat(),
        &large,
    ] {
        pair.with("GET", "/app", fields, b"");
    }
    for (method, fields) in [
        ("GET", ""),
        ("GET", "TE: trailers\r\nConnection: TE\r\n"),
        ("HEAD", ""),
    ] {
        pair.with(method, "/app/chunks", fields, b"");
    }
    pair.check("GET", "GET /app HTTP/1.0\r\nHost: test\r\n\r\n");
    for host in "test:80 TEST a.b-c.example [::1] [::1]:8080 127.0.0.1 a_b".split(' ') {
        let request = format!("GET /empty HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(pair.check("GET", request).status(), 200, "{host}");
    }
    let absolute = "GET http://other/empty HTTP/1.1\r\nHost: test\r\n\r\n";
    pair.check("GET", absolute);
}

#[test]
fn targets() {
    const TARGETS: &str = r#"/ // //x /app//x /%2f /app/%2F /app/%2e%2e/x /app/../x /app/./x /? /app? /app?? /app?a=b&c=d
        /app?a=%20+ /app?/../x /app?a=http://b/ /app/% /app/%zz /app/a;b=c /app/a,b /app/(x) /app/~a /app/a=b /app/a@b:c
        /app/'x' /app/!$&*+ /app/[x] /app/{x} /app/a|b /app/a\b /app/"x" /app/a^b /app/%E2%82%AC /app?[x] /app?{x}
        /app?a|b /app?a\b /app?^ /app?` http://test/app/x http://test?x http://test"#;
    let pair = pair();
    let long = format!("/app?{}", "x".repeat(7_000));
    for target in TARGETS.split_whitespace().chain([&*long]) {
        pair.get(target);
    }
    assert_eq!(pair.get("/app/%00").status(), 400);
    pair.with("OPTIONS", "*", "", b"");
    pair.with("OPTIONS", "http://test", "", b"");
}
