//! Compares which proxies are trusted to name the client of a request.

use crate::programs::nginx::Nginx;
use crate::support::{Answer, Exchange, Gateway, Origin, fetch, fetch_with};
use crate::support::{file, zone};

const LIMITS: &str = "limits = [{ zone = \"z\", burst = 9, nodelay = true }]";

/// Starts an origin that answers with the fields about the client that it received.
fn echo_origin() -> Origin {
    Origin::answering(|exchange: &mut Exchange| {
        let own = ["for", "proto", "host"].map(|name| format!("x-forwarded-{name}"));
        let names = own.iter().map(|name| &**name).chain(["forwarded"]);
        let received: Vec<_> = names
            .map(|it| exchange.field(it).unwrap_or("-").to_owned())
            .collect();
        exchange.reply(received.join("|").as_bytes())
    })
}

fn start(origin: &Origin, server: &str) -> Gateway {
    let zones = zone("z", "$remote_addr", "1r/h");
    let routes = file(origin, &zones, &[("/", LIMITS), ("/free", "")]);
    Gateway::start(&format!("{server}\n{routes}"))
}

fn ask(gateway: &Gateway, target: &str, fields: &str) -> Answer {
    fetch_with(gateway.address(), target, fields)
}

const SPOOFED: &str = "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: b\r\nForwarded: for=192.0.2.9\r\n";

/// Only a trusted proxy names its client.
///
/// Checks the fields that the origin receives, and the key: requests of one client share it.
#[test]
fn a_proxy_names_its_client_if_it_is_trusted_and_nobody_else_is_believed() {
    let trusted = "trusted_proxies = [\"127.0.0.0/8\"]";
    let rfc_7239 = format!("{trusted}\nforwarded_header = \"forwarded\"");
    for (server, received, requests) in [
        (
            "",
            "127.0.0.1|http|a|-",
            &[(SPOOFED, 9), ("X-Forwarded-For: 192.0.2.2\r\n", 8)][..],
        ),
        (
            trusted,
            "192.0.2.1, 127.0.0.1|https|b|for=192.0.2.9",
            &[
                (SPOOFED, 9),
                ("X-Forwarded-For: 192.0.2.2\r\n", 9),
                ("X-Forwarded-For: 8.8.8.8, 192.0.2.1\r\n", 8),
                // The peer's own address.
                ("X-Forwarded-For: nonsense\r\n", 9),
            ],
        ),
        (
            &rfc_7239,
            "192.0.2.1, 127.0.0.1|https|b|for=192.0.2.9",
            &[
                (SPOOFED, 9),
                (
                    "Forwarded: for=\"192.0.2.9:80\"\r\nX-Forwarded-For: 1.1.1.1\r\n",
                    8,
                ),
            ],
        ),
    ] {
        let origin = echo_origin();
        let gateway = start(&origin, server);
        assert_eq!(ask(&gateway, "/free", SPOOFED).text(), received, "{server}");
        for (fields, remaining) in requests {
            let answer = ask(&gateway, "/", fields);
            let found = answer.number("x-ratelimit-remaining");
            assert_eq!(found, *remaining, "{server} {fields}");
        }
    }
}

#[test]
fn an_encoded_path_does_not_slip_past_its_limits() {
    let origin = Origin::start();
    let zones = zone("z", "$remote_addr", "1r/h");
    let routes = [("/", ""), ("/login", "limits = [{ zone = \"z\" }]")];
    let gateway = Gateway::start(&file(&origin, &zones, &routes));
    assert_eq!(ask(&gateway, "/login", "").status, 200);
    let spellings = "/login /%6Cogin //login /x/../login /./login /x/%2e%2e/login";
    for target in spellings.split(' ') {
        assert_eq!(ask(&gateway, target, "").status, 429, "{target}");
    }
    assert_eq!(ask(&gateway, "/x/%2Flogout", "").status, 200);
    // The origin receives the target as it was sent.
    let targets: Vec<_> = origin.arrivals().into_iter().map(|it| it.target).collect();
    assert_eq!(targets, ["/login", "/x/%2Flogout"]);
}

#[test]
fn a_zero_byte_hides_no_path_from_the_routes_that_see_its_end() {
    let origin = Origin::start();
    let nginx_locations = [
        ("/", ""),
        ("= /sec", "return 403;"),
        ("~ \\.bak$", "return 403;"),
    ];
    let nginx = Nginx::start(&origin, "", &nginx_locations);
    let gateway = Gateway::start(&format!(
        "{}[[routes]]\npath = \"= /sec\"\nrefuse = 403\n\
         [[routes]]\npath = 'regex:\\.bak$'\nrefuse = 403\n",
        file(&origin, "", &[("/", "")])
    ));
    for (target, expected) in [
        ("/sec", 403),
        ("/%73ec", 403),
        ("/sec%00", 400),
        ("/sec%00.html", 400),
        ("/x.bak", 403),
        ("/x.bak%00", 400),
        ("/x.bak%00?a", 400),
        ("/a%00/../b", 400),
        ("/sec?%00", 403),
        ("/x?%00", 200),
        ("/%2500", 200),
    ] {
        let [theirs, ours] =
            [nginx.address, gateway.address()].map(|address| fetch(address, target).status);
        assert_eq!((theirs, ours), (expected, expected), "{target}");
    }
}
