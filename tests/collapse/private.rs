//! Tests that responses to requests with credentials are not shared.
//!
//! A request with credentials gets no response that was made for others, either.

use std::net::SocketAddr;

use super::{ask, file, file_with, how, request, wait_until_passed};
use crate::support::{Client, Exchange, Gateway, HoldingOrigin, Origin, fetch_with};

const HOUR: &str = "keep = \"1h\"";

/// Starts an origin that greets by the named fields of the request, and is otherwise constant.
fn greeter() -> Origin {
    Origin::answering(|exchange: &mut Exchange| {
        #[rustfmt::skip]
        let names = [
            "authorization", "cookie", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-user",
            "x-forwarded-client-cert", "forwarded",
        ];
        let fields = exchange.head.fields.iter();
        let seen = fields.filter(|(name, _)| names.contains(&name.as_str()));
        let seen: Vec<_> = seen
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let body = format!("{} for {}", exchange.target(), seen.join(" "));
        // A private page that looks cacheable: the origin does not mark it as private.
        let fields = "Content-Type: text/css\r\nCache-Control: public, max-age=3600";
        let length = body.len();
        let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\nContent-Length: {length}\r\n\r\n");
        exchange.send(format!("{head}{body}").as_bytes())
    })
}

fn body(at: SocketAddr, target: &str, fields: &str) -> String {
    let answer = fetch_with(at, target, fields);
    assert_eq!(answer.status, 200, "{fields}: {answer:?}");
    answer.text()
}

#[test]
fn a_private_page_at_a_path_that_looks_public_is_given_to_nobody_else() {
    let origin = greeter();
    let gateway = Gateway::start(&file(origin.address, HOUR));
    let at = gateway.address();
    #[rustfmt::skip]
    let credentials = [
        "Cookie: session=alice\r\n", "Cookie: tracker=alice\r\n", "Cookie: alice\r\n",
        "cookie:a=1\r\nCOOKIE: b=alice\r\n", "Authorization: Basic alice\r\n",
        "authorization: Bearer alice\r\n", "Authorization: alice\r\nConnection: authorization\r\n",
        "Cookie: alice=1\r\nConnection: cookie\r\n",
    ];
    #[rustfmt::skip]
    let paths = [
        "/account/x.css", "/account/x.css?a", "/account;x.css", "/account%2Fx.css",
        "/account/%2e%2e/x.css", "/account/..%2fx.css", "/account%00.css",
    ];
    for (nth, fields) in credentials.into_iter().enumerate() {
        for path in paths.into_iter().take(6) {
            let target = format!("{path}{nth}");
            let first = fetch_with(at, &target, fields);
            assert_eq!((first.status, how(&first)), (200, ""), "{fields}");
            // The attacker requests the page to which the victim was sent.
            let stolen = body(at, &target, "");
            assert!(!stolen.contains("alice"), "{fields} {target}: {stolen}");
            // A response kept now is nobody's, and is not given to requests with credentials
            // either.
            let own = body(at, &target, &fields.replace("alice", "bob"));
            assert!(!own.contains("alice"), "{fields} {target}: {own}");
            if !fields.contains("Connection") {
                assert!(own.contains("bob"), "{fields} {target}: {own}");
            }
            assert_eq!(body(at, &target, ""), stolen);
        }
    }
    // If a path ends at a zero byte, its meaning is unknown.
    assert_eq!(fetch_with(at, paths[6], "").status, 400);
}

#[test]
fn one_with_credentials_waits_for_nobody_and_nobody_for_it() {
    let origin = HoldingOrigin::start();
    let gateway = Gateway::start(&file(origin.origin.address, ""));
    let at = gateway.address();
    let mut public = ask(at, "/a", "");
    origin.origin.wait_for(1);
    let fields = ["Cookie: a=1\r\n", "Authorization: x\r\n"];
    let mut own: Vec<_> = fields.iter().map(|it| ask(at, "/a", it)).collect();
    // Both requests are at the origin, while a third one waits for the first.
    origin.origin.wait_for(3);
    let mut follower = ask(at, "/a", "");
    wait_until_passed(&gateway, 4);
    let mut first = ask(at, "/b", "Cookie: a=1\r\n");
    origin.origin.wait_for(4);
    let mut second = ask(at, "/b", "");
    origin.origin.wait_for(5);
    origin.release("/a");
    origin.release("/b");
    assert_eq!(how(&public.answer()), "leader");
    assert_eq!(how(&follower.answer()), "follower");
    for own in &mut own {
        assert_eq!(how(&own.answer()), "");
    }
    assert_eq!(how(&first.answer()), "");
    assert_eq!(how(&second.answer()), "leader");
}

#[test]
fn cookies_that_are_named_keep_a_request_apart_in_any_spelling_and_others_do_not() {
    let origin = Origin::answering(|exchange: &mut Exchange| {
        // The origin answers by the session alone.
        let has = exchange.head.fields.iter().any(|(name, value)| {
            name == "cookie" && value.to_ascii_lowercase().contains("session")
        });
        exchange.reply(if has { b"private" } else { b"public" })
    });
    let gateway = Gateway::start(&file(
        origin.address,
        "keep = \"1h\"\ncookies = [\"session\"]",
    ));
    let at = gateway.address();
    assert_eq!(body(at, "/a", "Cookie: theme=dark\r\n"), "public");
    for fields in [
        "",
        "Cookie: x=1\r\n",
        "Cookie: theme=light; y=2\r\n",
        "Cookie:\r\n",
        "Cookie: my_sess=1\r\n",
    ] {
        let answer = fetch_with(at, "/a", fields);
        assert_eq!(how(&answer), "kept", "{fields}");
        assert_eq!(answer.text(), "public");
    }
    for fields in [
        "Cookie: session=1\r\n",
        "Cookie: x=1; session=1\r\n",
        "Cookie: x=1;session=1\r\n",
        "Cookie: session=1; session=2\r\n",
        "Cookie: x=1\r\nCookie: session=1\r\n",
        "Cookie: SESSION=1\r\n",
        "Cookie: Session=\"1\"\r\n",
        "Cookie: session=\r\n",
        "Cookie: session = 1\r\n",
        "Cookie: x=\"a; session=1\"\r\n",
        // Only some programs parse a cookie in these fields.
        "Cookie: x=1 session=1\r\n",
        "Cookie: x=1,session=1\r\n",
        "Cookie: x=1,\tsession =1\r\n",
    ] {
        let answer = fetch_with(at, "/a", fields);
        assert_eq!(how(&answer), "", "{fields}");
        assert_eq!(answer.text(), "private", "{fields}");
    }
    // None of them led: the response is still nobody's.
    assert_eq!(body(at, "/a", ""), "public");
    for _ in 0..2 {
        assert_eq!(body(at, "/b", "Cookie: session=1\r\n"), "private");
        assert_eq!(body(at, "/b", ""), "public");
    }
}

#[test]
fn what_a_trusted_proxy_says_of_its_clients_request_is_part_of_the_key() {
    let origin = greeter();
    let rest = file_with(origin.address, "", "", HOUR);
    let gateway = Gateway::start(&format!("trusted_proxies = [\"127.0.0.1\"]\n{rest}"));
    let at = gateway.address();
    // Each pair requests one page for two hosts, schemes or people.
    for (nth, (one, other)) in [
        ("X-Forwarded-Host: a", "X-Forwarded-Host: b"),
        ("X-Forwarded-Host: c", ""),
        ("X-Forwarded-Proto: http", "X-Forwarded-Proto: https"),
        ("X-Forwarded-User: alice", "X-Forwarded-User: bob"),
        (
            "Forwarded: for=192.0.2.1;host=a",
            "Forwarded: for=192.0.2.1;host=b",
        ),
        (
            "Forwarded: Host=\"a\";for=192.0.2.1",
            "Forwarded: Host=\"b\";for=192.0.2.1",
        ),
        (
            "Forwarded: for=192.0.2.1, for=192.0.2.2;host=a",
            "Forwarded: for=192.0.2.1, for=192.0.2.2;host=b",
        ),
        ("X-Forwarded-Client-Cert: Subject=\"CN=alice\"", ""),
    ]
    .into_iter()
    .enumerate()
    {
        let line = |fields: &str| match fields {
            "" => String::new(),
            fields => format!("{fields}\r\n"),
        };
        let target = format!("/{nth}");
        let first = body(at, &target, &line(one));
        let second = body(at, &target, &line(other));
        assert_ne!(first, second, "{one} {other}");
        assert_eq!(body(at, &target, &line(one)), first, "{one}");
        assert_eq!(body(at, &target, &line(other)), second, "{other}");
    }
    // The client's address does not change the page.
    for (nth, (one, other)) in [
        ("X-Forwarded-For: 192.0.2.1", "X-Forwarded-For: 192.0.2.2"),
        (
            "Forwarded: for=192.0.2.1;host=a",
            "Forwarded: host=a; FOR=\"[2001:db8::1]:80\";by=x",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let target = format!("/same/{nth}");
        let answer = fetch_with(at, &target, &format!("{one}\r\n"));
        assert_eq!(how(&answer), "leader");
        let answer = fetch_with(at, &target, &format!("{other}\r\n"));
        assert_eq!(how(&answer), "kept", "{one} {other}");
    }
}

/// Requests with a body, and upgrades, share nothing.
#[test]
fn requests_that_are_more_than_a_question_share_nothing() {
    let origin = Origin::answering(|exchange: &mut Exchange| {
        exchange.body()?;
        exchange.reply(b"ok")
    });
    let gateway = Gateway::start(&file(origin.address, HOUR));
    let at = gateway.address();
    assert_eq!(how(&fetch_with(at, "/a", "")), "leader");
    for (method, fields) in [
        ("GET", "Content-Length: 2\r\n\r\nhi"),
        ("GET", "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n"),
        ("GET", "Upgrade: websocket\r\nConnection: upgrade\r\n"),
        ("GET", "Cache-Control: no-store\r\n"),
        ("GET", "If-Match: \"a\"\r\n"),
        ("POST", "Content-Length: 0\r\n"),
        ("PUT", "Content-Length: 0\r\n"),
        ("DELETE", ""),
        ("OPTIONS", ""),
        ("PURGE", ""),
    ] {
        let before = origin.arrivals().len();
        let mut client = Client::connect(at);
        client.send(request(method, "/a", fields).as_bytes());
        let answer = client.answer();
        assert_eq!(answer.status, 200, "{method} {fields}");
        assert_eq!(how(&answer), "", "{method} {fields}");
        assert_eq!(origin.arrivals().len(), before + 1, "{method} {fields}");
    }
    // The kept response is unchanged.
    assert_eq!(how(&fetch_with(at, "/a", "")), "kept");
}
