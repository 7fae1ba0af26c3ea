//! Which proxies are trusted to name the client of a request.

use crate::programs::nginx::Nginx;
use crate::support::{Answer, Client, Exchange, Gateway, Origin, fetch};
use crate::support::{file, zone};

const LIMITS: &str = "limits = [{ zone = \"z\", burst = 9, nodelay = true }]";

/// An origin that answers with what it gets about the client.
fn telling() -> Origin {
    Origin::answering(|exchange: &mut Exchange| {
        let names = [
            "x-forwarded-for",
            "x-forwarded-proto",
            "x-forwarded-host",
            "forwarded",
        ];
        let told = names.map(|name| exchange.field(name).unwrap_or("-").to_owned());
        exchange.reply(told.join("|").as_bytes())
    })
}

fn start(origin: &Origin, server: &str, zone_more: &str) -> Gateway {
    let zones = zone("z", "$remote_addr", "1r/h") + zone_more;
    Gateway::start(&format!(
        "{server}\n{}",
        file(origin, &zones, &[("/", LIMITS)])
    ))
}

fn ask(gateway: &Gateway, target: &str, fields: &str) -> Answer {
    let mut client = Client::connect(gateway.address());
    client.send(format!("GET {target} HTTP/1.1\r\nHost: asked\r\n{fields}\r\n").as_bytes());
    client.answer()
}

const SPOOFED: &str = "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: b\r\nForwarded: for=192.0.2.9\r\n";

#[test]
fn nobody_is_believed_by_default() {
    let origin = telling();
    let gateway = start(&origin, "", "");
    let first = ask(&gateway, "/", SPOOFED);
    assert_eq!(first.text(), "127.0.0.1|http|asked|-");
    let second = ask(&gateway, "/", "X-Forwarded-For: 192.0.2.2\r\n");
    assert_eq!(
        [&first, &second].map(|answer| answer.number("x-ratelimit-remaining")),
        [9, 8],
        "both are the peer's"
    );
}

#[test]
fn a_trusted_peer_names_its_client_and_its_chain_grows() {
    let origin = telling();
    let gateway = start(&origin, "trusted_proxies = [\"127.0.0.0/8\"]", "");
    let first = ask(&gateway, "/", SPOOFED);
    assert_eq!(first.text(), "192.0.2.1, 127.0.0.1|https|b|for=192.0.2.9");
    let remaining = ["192.0.2.2", "192.0.2.1", "8.8.8.8, 192.0.2.1", "nonsense"].map(|chain| {
        let answer = ask(&gateway, "/", &format!("X-Forwarded-For: {chain}\r\n"));
        answer.number("x-ratelimit-remaining")
    });
    assert_eq!(
        remaining,
        [9, 8, 7, 9],
        "a key for each client, and the peer's own for garbage"
    );
}

#[test]
fn the_field_of_rfc_7239_can_be_believed_instead() {
    let origin = telling();
    let server = "trusted_proxies = [\"127.0.0.1\"]\nforwarded_header = \"forwarded\"";
    let gateway = start(&origin, server, "");
    let remaining = |fields: &str| ask(&gateway, "/", fields).number("x-ratelimit-remaining");
    assert_eq!(remaining("Forwarded: for=192.0.2.9\r\n"), 9);
    assert_eq!(
        remaining("Forwarded: for=\"192.0.2.9:80\"\r\nX-Forwarded-For: 1.1.1.1\r\n"),
        8
    );
}

#[test]
fn exempt_clients_are_not_limited() {
    let origin = telling();
    let server = "trusted_proxies = [\"127.0.0.1\"]";
    let gateway = start(&origin, server, "exempt = [\"192.0.2.0/24\"]\n");
    for _ in 0..20 {
        let answer = ask(&gateway, "/", "X-Forwarded-For: 192.0.2.77\r\n");
        assert_eq!(
            (answer.status, answer.field("x-ratelimit-limit")),
            (200, None)
        );
    }
    let answer = ask(&gateway, "/", "X-Forwarded-For: 198.51.100.1\r\n");
    assert_eq!(answer.field("x-ratelimit-limit"), Some("10"));
}

#[test]
fn an_encoded_path_does_not_slip_past_its_limits() {
    let origin = Origin::start();
    let zones = zone("z", "$remote_addr", "1r/h");
    let routes = [("/", ""), ("/login", "limits = [{ zone = \"z\" }]")];
    let gateway = Gateway::start(&file(&origin, &zones, &routes));
    assert_eq!(ask(&gateway, "/login", "").status, 200);
    for target in [
        "/login",
        "/%6Cogin",
        "//login",
        "/x/../login",
        "/./login",
        "/x/%2e%2e/login",
    ] {
        assert_eq!(ask(&gateway, target, "").status, 429, "{target}");
    }
    assert_eq!(ask(&gateway, "/x/%2Flogout", "").status, 200);
    let targets: Vec<_> = origin
        .arrivals()
        .into_iter()
        .map(|arrival| arrival.target)
        .collect();
    assert_eq!(
        targets,
        ["/login", "/x/%2Flogout"],
        "the origin gets the target as it was sent"
    );
}

#[test]
fn a_zero_byte_hides_no_path_from_the_routes_that_see_its_end() {
    let origin = Origin::start();
    let places = [
        ("/", ""),
        ("= /sec", "return 403;"),
        ("~ \\.bak$", "return 403;"),
    ];
    let nginx = Nginx::start(&origin, "", &places);
    let gateway = Gateway::start(&format!(
        "{}[[routes]]\npath = \"= /sec\"\nrefuse = 403\n\
         [[routes]]\npath = 'regex:\\.bak$'\nrefuse = 403\n",
        file(&origin, "", &[("/", "")])
    ));
    for (target, wanted) in [
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
        assert_eq!((theirs, ours), (wanted, wanted), "{target}");
    }
}
