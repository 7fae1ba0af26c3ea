//! Compares the paths that nginx and drip send to the origin if a prefix is replaced.

use std::net::SocketAddr;

use crate::programs::nginx::Nginx;
use crate::support::start_drip;
use crate::support::{Exchange, Origin, fetch};

/// Routes, with the end of nginx's `proxy_pass`, and drip's fields.
const ROUTES: [(&str, &str, &str); 4] = [
    ("/v1/", "/", "strip_prefix = \"/v1\""),
    (
        "/v2/",
        "/app/",
        "strip_prefix = \"/v2\"\nadd_prefix = \"/app\"",
    ),
    ("/v3/", "/x", "strip_prefix = \"/v3/\"\nadd_prefix = \"/x\""),
    (
        "/caf\u{e9} %/",
        "/c%41f%C3%A9/",
        "strip_prefix = \"/caf\u{e9} %\"\nadd_prefix = \"/c%41f%C3%A9\"",
    ),
];

/// Requested targets. `PREFIX` stands for `v1` to `v3` in turn.
const TARGETS: &str = "/PREFIX/ /PREFIX/a /PREFIX/a?b=/../c /PREFIX/a/? /PREFIX/a%20b/caf%C3%A9 /PREFIX/a/../b \
    /PREFIX/../PREFIX/b /a/../PREFIX/x //PREFIX//x//y /PREFIX/./x/. /PREFIX/%2e%2e/PREFIX/x \
    /PREFIX/%2e%2e/PREFIX/%2e%2e/PREFIX/%2E/x /PREFIX/..%2fPREFIX/x /PREFIX%2fx /PREFIX/x%2fy \
    /PREFIX/x%2f%2fy /PREFIX/%252e%252e/x /PREFIX/%25/x /PREFIX/..a/x /PREFIX/a../x /PREFIX/.../x \
    /PREFIX/a%3fb%23c /PREFIX/a;b=c,d:e@f!g$h&i'(j)*k+l=m~n /PREFIX/%41%2d%5F%7e \
    /PREFIX/a%5Cb%22%3C%7C /PREFIX/%ff%01";

fn target_at(address: SocketAddr, target: &str) -> (u16, String) {
    let answer = fetch(address, target);
    (answer.status, answer.text())
}

/// Starts an origin that answers with the target it received.
fn echo_origin() -> Origin {
    Origin::answering(|exchange: &mut Exchange| {
        let target = exchange.target().to_owned();
        exchange.reply(target.as_bytes())
    })
}

/// Decodes a target's path and merges slashes. Targets with equal results are equal to an origin.
fn read(target: &str) -> (Vec<u8>, &str) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut decoded: Vec<u8> = percent_encoding::percent_decode_str(path).collect();
    decoded.dedup_by(|a, b| (*a, *b) == (b'/', b'/'));
    (decoded, query)
}

#[test]
fn the_origin_gets_the_path_that_nginx_sends_whatever_the_client_wrote() {
    let origin = echo_origin();
    let nginx_locations: Vec<(String, String)> = ROUTES
        .iter()
        .enumerate()
        .map(|(nth, (path, uri, _))| {
            let text = format!("proxy_pass http://{}{uri};", origin.address);
            (
                format!("\"{path}\""),
                format!("{text} }} location /un{nth} {{"),
            )
        })
        .collect();
    let nginx_locations: Vec<(&str, &str)> =
        nginx_locations.iter().map(|(a, b)| (&**a, &**b)).collect();
    let nginx = Nginx::start(&origin, "", &nginx_locations);
    let routes = ROUTES.map(|(path, _, fields)| (path, fields));
    let gateway = start_drip(&origin, "", &routes);
    let prefixes = ["v1", "v2", "v3"].into_iter();
    let targets =
        prefixes.flat_map(|prefix| TARGETS.split(' ').map(|it| it.replace("PREFIX", prefix)));
    let more = ["/caf%C3%A9%20%25/x", "/caf%c3%a9%20%25/%78/"].map(str::to_owned);
    for target in targets.chain(more) {
        let [theirs, ours] =
            [nginx.address, gateway.address()].map(|address| target_at(address, &target));
        assert_eq!(theirs.0, 200, "{target}");
        assert_eq!(ours.0, 200, "{target}");
        let (of_drip, of_nginx) = (read(&ours.1), read(&theirs.1));
        assert_eq!(of_drip, of_nginx, "{target}: {ours:?} {theirs:?}");
        // The rest behind the prefix is unchanged, unless dots are resolved. nginx decodes and
        // encodes it, and drops a `?` without a query.
        let path = target.split('?').next().unwrap_or_default();
        let is_plain = !path.contains('%') && !target.ends_with('?');
        if is_plain && !path.contains("/.") && !path.contains("//") {
            assert_eq!(ours.1, theirs.1, "{target}");
        }
    }
}

/// The path behind the prefix reaches the origin byte for byte.
///
/// nginx decodes the path, and sends `/api/a/b` for `/v1/a%2Fb`. Then names of projects at GitLab,
/// of images in registries and of objects in S3 are not found.
#[test]
fn what_stands_behind_the_prefix_reaches_the_origin_byte_for_byte() {
    let origin = echo_origin();
    let fields = "strip_prefix = \"/v1\"\nadd_prefix = \"/api\"";
    let only_added = ("/g/", "add_prefix = \"/gitlab\"");
    let gateway = start_drip(&origin, "", &[("/v1", fields), only_added]);
    for (target, expected) in [
        ("/v1/a%2Fb", "/api/a%2Fb"),
        ("/v1/a%2fb?c=%2F", "/api/a%2fb?c=%2F"),
        ("/v1/%41%7e%25", "/api/%41%7e%25"),
        ("/v1/caf%c3%a9//x", "/api/caf%c3%a9//x"),
        (
            "/g/group%2Fproject/-/raw",
            "/gitlab/g/group%2Fproject/-/raw",
        ),
        // Decoding changes what the prefix covers, or dots remain.
        ("/%761/a%2Fb", "/api/a/b"),
        ("/v1%2Fa%2Fb", "/api/a/b"),
        ("/v1/x/../a%2Fb", "/api/a/b"),
        ("/v1/x/%2e%2e/a%2Fb", "/api/a/b"),
        ("/v1/a%2F..%2F%2E%2e/b", "/b"),
        ("//v1/a%2Fb", "/api/a/b"),
    ] {
        let (status, sent) = target_at(gateway.address(), target);
        if expected == "/b" {
            // The resolved path does not belong to the route.
            assert_eq!(status, 404, "{target}: {sent}");
        } else {
            assert_eq!((status, &*sent), (200, expected), "{target}");
        }
    }
}

/// No request leaves the prefix that drip adds.
///
/// If a prefix is not a complete segment, `..` can remain of a name. nginx forwards it.
#[test]
fn no_request_leaves_the_prefix_that_drip_adds() {
    let origin = echo_origin();
    let gateway = start_drip(
        &origin,
        "",
        &[
            (
                "/v1",
                "strip_prefix = \"/v1\"\nadd_prefix = \"/app/public/\"",
            ),
            ("/v2", "strip_prefix = \"/v2\""),
            (
                "/v3",
                "strip_prefix = \"/v3\"\nadd_prefix = \"/app/public\"",
            ),
        ],
    );
    for (target, expected) in [
        ("/v1/a", Some("/app/public/a")),
        ("/v1", Some("/app/public/")),
        ("/v1a", Some("/app/public/a")),
        ("/v1.../a", Some("/app/public/.../a")),
        ("/v1../secret", None),
        ("/v1%2e%2e/secret", None),
        ("/v1./secret", None),
        ("/v1..%2fsecret", None),
        ("/v1..", None),
        ("/v2../secret", None),
        ("/v2/../v2../secret", None),
        ("/v2", Some("/")),
        ("/v2?a", Some("/?a")),
        ("/v3../secret", Some("/app/public../secret")),
    ] {
        let (status, sent) = target_at(gateway.address(), target);
        match expected {
            Some(expected) => assert_eq!((status, &*sent), (200, expected), "{target}"),
            None => assert_eq!(status, 400, "{target}: {sent}"),
        }
    }
    let mut client = gateway.connect();
    client.send(
        b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\nGET http://a/v2/b HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    assert_eq!(client.answer().status, 404);
    assert_eq!(client.answer().text(), "/b");
}

#[test]
fn a_location_passes_unchanged() {
    const HEAD: &[u8] = b"HTTP/1.1 302 Found\r\nLocation: /app/login\r\nContent-Length: 0\r\n\r\n";
    let origin = Origin::answering(|exchange: &mut Exchange| exchange.send(HEAD));
    let pass = format!(
        "proxy_pass http://{}/app/; }} location /un {{",
        origin.address
    );
    let nginx = Nginx::start(&origin, "", &[("/v1/", &pass)]);
    let fields = "strip_prefix = \"/v1\"\nadd_prefix = \"/app\"";
    let gateway = start_drip(&origin, "", &[("/v1/", fields)]);
    for address in [nginx.address, gateway.address()] {
        let answer = fetch(address, "/v1/x");
        assert_eq!(answer.field("location"), Some("/app/login"));
    }
}
