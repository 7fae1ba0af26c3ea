//! Tests of `[routes.cors]`: preflights, and fields that let a script read the response.

use crate::support::{Answer, Gateway, Origin, assert_contains, exchange, start_drip, zone};

const SITE: &str = "https://app.example";

fn gateway(origin: &Origin, cors: &str) -> Gateway {
    let limits = "methods = [\"GET\", \"PUT\"]\nlimits = [{ zone = \"all\", burst = 0 }]";
    let route = format!("{limits}\n[routes.cors]\n{cors}");
    start_drip(origin, &zone("all", "all", "1r/h"), &[("/", &route)])
}

fn ask(gateway: &Gateway, method: &str, fields: &[(&str, &str)]) -> Answer {
    let fields = fields
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"));
    let fields: String = fields.collect();
    let head = format!("{method} /a HTTP/1.1\r\nHost: a.test\r\n{fields}\r\n");
    exchange(gateway.address(), head)
}

fn preflight(gateway: &Gateway, site: &str) -> Answer {
    let fields = [
        ("Origin", site),
        ("Access-Control-Request-Method", "PUT"),
        ("Access-Control-Request-Headers", "content-type,x-api-key"),
    ];
    ask(gateway, "OPTIONS", &fields)
}

#[test]
fn a_preflight_is_answered_before_any_limit_and_never_reaches_the_origin() {
    let origin = Origin::start();
    let cors = format!("origins = [\"{SITE}\"]\ncredentials = true\nmax_age = \"1h\"");
    let gateway = gateway(&origin, &cors);
    for _ in 0..5 {
        let answer = preflight(&gateway, SITE);
        assert_eq!(answer.status, 204);
        for (name, value) in [
            ("access-control-allow-origin", SITE),
            ("access-control-allow-credentials", "true"),
            ("access-control-allow-methods", "PUT"),
            ("access-control-allow-headers", "content-type,x-api-key"),
            ("access-control-max-age", "3600"),
        ] {
            assert_eq!(answer.field(name), Some(value), "{name}");
        }
        assert_eq!(answer.field("content-length"), None);
    }
    let other = preflight(&gateway, "https://other.example");
    assert_eq!(other.status, 204);
    assert_eq!(other.field("access-control-allow-origin"), None);
    assert_eq!(other.field("access-control-allow-methods"), None);
    // Nothing was charged: the first request passes.
    assert_eq!(ask(&gateway, "GET", &[("Origin", SITE)]).status, 200);
    assert_eq!(origin.moments("/a").len(), 1);
    // An OPTIONS that is no preflight has no route here.
    assert_eq!(ask(&gateway, "OPTIONS", &[("Origin", SITE)]).status, 404);
}

#[test]
fn a_rejection_can_be_read_by_a_script_of_an_allowed_site() {
    let origin = Origin::answering(|exchange| {
        exchange.send(
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nAccess-Control-Allow-Origin: *\r\n\
              Access-Control-Expose-Headers: X-Own\r\n\r\nok",
        )
    });
    let gateway = gateway(&origin, &format!("origins = [\"{SITE}\"]"));
    for status in [200, 429] {
        let answer = ask(&gateway, "GET", &[("Origin", SITE)]);
        assert_eq!(answer.status, status);
        let allowed = answer.fields("access-control-allow-origin");
        assert_eq!(allowed, [SITE], "one value, and the gateway's");
        let exposed = answer.fields("access-control-expose-headers").join(", ");
        assert_contains!(exposed, "Retry-After");
        assert_eq!(exposed.contains("X-Own"), status == 200, "{exposed}");
        assert!(answer.fields("vary").contains(&"Origin"));
    }
    let other = ask(&gateway, "GET", &[("Origin", "https://other.example")]);
    assert_eq!(other.field("access-control-allow-origin"), None);
    let varies = other.fields("vary").contains(&"Origin");
    assert!(varies, "caches must not mix them up");
    let none = ask(&gateway, "GET", &[]);
    assert_eq!(none.field("access-control-allow-origin"), None);
}

#[test]
fn all_sites_may_be_allowed_without_credentials() {
    let origin = Origin::start();
    let gateway = gateway(&origin, "origins = [\"*\"]");
    for answer in [
        preflight(&gateway, SITE),
        ask(&gateway, "GET", &[("Origin", SITE)]),
        ask(&gateway, "GET", &[("Origin", SITE)]),
    ] {
        assert_eq!(answer.field("access-control-allow-origin"), Some("*"));
        assert_eq!(answer.field("access-control-allow-credentials"), None);
        assert!(!answer.fields("vary").contains(&"Origin"));
    }
}
