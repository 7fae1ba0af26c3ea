//! Tests of requests with a cost above one, and of charges that a response changes.

use serde_json::Value;

use crate::support::{
    Answer, Exchange, Gateway, MS, Origin, all_pass, best_of_three, eventually, exchange,
};

/// Returns a file with routes for these paths and fields, limited by the argument `key`.
fn file(origin: &Origin, rate: &str, limit: &str, routes: &[(&str, &str)]) -> String {
    let head = format!(
        r#"trusted_proxies = ["127.0.0.1"]

[log]
format = "json"
access = "access.log"

[origins.app]
servers = ["http://{}"]

[zones.z]
key = "$arg_key"
rate = "{rate}"
"#,
        origin.address
    );
    let routes = routes.iter().map(|(path, fields)| {
        let limit = format!("limits = [{{ zone = \"z\", {limit} }}]");
        format!("\n[[routes]]\npath = \"{path}\"\norigin = \"app\"\n{limit}\n{fields}\n")
    });
    head + &routes.collect::<String>()
}

/// Starts an origin that answers with the status and fields requested by `want-*` fields.
fn obedient() -> Origin {
    Origin::answering(|exchange: &mut Exchange| {
        exchange.body()?;
        let status = exchange.field("want-status").unwrap_or("200 OK").to_owned();
        let fields = exchange.field("want-field").unwrap_or("x-none: 1");
        let answer = format!("HTTP/1.1 {status}\r\n{fields}\r\nContent-Length: 2\r\n\r\nok");
        exchange.send(&answer)
    })
}

fn ask(gateway: &Gateway, target: &str, fields: &str) -> Answer {
    exchange(
        gateway.address(),
        format!("GET {target} HTTP/1.1\r\nHost: test\r\n{fields}\r\n"),
    )
}

fn remaining(answer: &Answer) -> u64 {
    answer.number("x-ratelimit-remaining")
}

#[test]
fn a_cost_delays_those_who_come_later_as_in_the_worked_example() {
    let origin = Origin::start();
    let routes = [("/1", ""), ("/5", "cost = 5")];
    let gateway = Gateway::start(&file(&origin, "10r/s", "burst = 10", &routes));
    best_of_three(|attempt| {
        let target = |path| format!("{path}?key={attempt}");
        let mut clients = [(); 4].map(|()| gateway.connect());
        for (client, path) in clients.iter_mut().zip(["/1", "/5", "/1", "/1"]) {
            client.get(&target(path));
            std::thread::sleep(3 * MS);
        }
        let refused = gateway.fetch(&target("/5")).status;
        if refused != 429 {
            return Err(format!("{refused} in place of 429"));
        }
        all_pass(&mut clients);
        let moments = origin.moments(&format!("key={attempt}"));
        for (moment, requested) in moments.iter().zip([0, 100, 600, 700]) {
            let since = *moment - moments[0];
            if since.abs_diff(requested * MS) > 15 * MS {
                return Err(format!("one arrived after {since:?}, not {requested} ms"));
            }
        }
        Ok(())
    });
}

#[test]
fn a_field_of_a_trusted_peer_names_the_cost() {
    let origin = Origin::start();
    let rule = "cost = { header = \"X-Cost\", default = 2, max = 6 }";
    let limit = "burst = 10, nodelay = true";
    let text = file(&origin, "1r/h", limit, &[("/", rule)]);
    let gateway = Gateway::start(&text);
    let left = |key: &str, field: &str| remaining(&ask(&gateway, &format!("/?key={key}"), field));
    for (nth, (field, expected)) in [
        ("x-cost: 5\r\n", 6),
        ("", 9),
        ("x-cost: 0\r\n", 9),
        ("x-cost: 1.5\r\n", 9),
        ("x-cost: many\r\n", 9),
        ("x-cost: 1000\r\n", 5),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(left(&nth.to_string(), field), expected, "{field}");
    }
    // Eleven in all: the third request of six does not fit.
    assert_eq!(left("5", "x-cost: 5\r\n"), 0);
    let refused = ask(&gateway, "/?key=5", "x-cost: 1\r\n");
    assert_eq!((refused.status, refused.number("retry-after")), (429, 3600));

    let untrusted = text.replace("trusted_proxies = [\"127.0.0.1\"]", "");
    let gateway = Gateway::start(&untrusted);
    assert_eq!(remaining(&ask(&gateway, "/?key=a", "x-cost: 5\r\n")), 9);
}

#[test]
fn a_body_costs_by_its_length() {
    let origin = obedient();
    let rule = "cost = { body_per = \"64KB\", max = 5 }";
    let limit = "burst = 10, nodelay = true";
    let gateway = Gateway::start(&file(&origin, "1r/h", limit, &[("/", rule)]));
    for (key, length, cost) in [
        ("a", 0, 1),
        ("b", 65_535, 1),
        ("c", 65_536, 2),
        ("d", 900_000, 5),
    ] {
        let mut client = gateway.connect();
        let head =
            format!("POST /?key={key} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
        client.send(&head);
        client.send(vec![b'x'; length]);
        assert_eq!(remaining(&client.answer()), 11 - cost, "{length}");
    }
    let mut client = gateway.connect();
    client.send(b"POST /?key=e HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    assert_eq!(remaining(&client.answer()), 6, "its length was not known");
}

#[test]
fn an_answer_bills_its_request_and_the_client_does_not_see_the_cost() {
    let origin = obedient();
    let rule = "cost = { response_header = \"X-Drip-Cost\", estimate = 2, max = 9 }";
    let limit = "burst = 20, nodelay = true";
    let gateway = Gateway::start(&file(&origin, "1r/h", limit, &[("/", rule)]));
    // Costs in responses, and the resulting charges.
    for (said, cost) in [("5", 5), ("1", 1), ("100", 9), ("0", 2), ("nothing", 2)] {
        let target = format!("/?key={said}");
        let field = format!("want-field: x-drip-cost: {said}\r\n");
        let answer = ask(&gateway, &target, &field);
        assert_eq!((answer.status, remaining(&answer)), (200, 19));
        assert_eq!(answer.field("x-drip-cost"), None, "it is removed");
        // The next request is charged its estimate as well.
        eventually("it is billed", || {
            let probe = ask(&gateway, &target, "want-field: x-drip-cost: 1\r\n");
            let before = 19 - cost;
            // Each probe costs one.
            (before - 3..=before).contains(&remaining(&probe))
        });
    }
}

#[test]
fn an_answer_bills_the_gate_too() {
    let origin = obedient();
    let rule = "cost = { response_header = \"x-drip-cost\", max = 5 }";
    let text = file(&origin, "1000r/s", "burst = 20", &[("/", rule)]);
    let text = text.replace("[zones.z]", "rate = \"10r/s\"\n\n[zones.z]");
    let gateway = Gateway::start(&text);
    best_of_three(|attempt| {
        let target = format!("/?key={attempt}");
        let first = ask(&gateway, &target, "want-field: x-drip-cost: 5\r\n");
        assert_eq!(first.status, 200);
        let second = ask(&gateway, &target, "want-field: x-drip-cost: 1\r\n");
        assert_eq!(second.status, 200);
        let moments = origin.moments(&format!("key={attempt}"));
        let gap = moments[1] - moments[0];
        // The next attempt begins with an open gate.
        std::thread::sleep(200 * MS);
        if gap.abs_diff(500 * MS) < 25 * MS {
            Ok(())
        } else {
            Err(format!("{gap:?} apart"))
        }
    });
}

#[test]
fn only_failures_count_where_successes_are_refunded() {
    let origin = obedient();
    let limit = "burst = 4, nodelay = true";
    let routes = [("/login", "refund = [\"2xx\", \"302\"]")];
    let gateway = Gateway::start(&file(&origin, "5r/h", limit, &routes));
    let login = |user: &str, status: &str| {
        let fields = format!("want-status: {status}\r\n");
        ask(&gateway, &format!("/login?key={user}"), &fields).status
    };
    let wrong = "401 Unauthorized";
    let attack: Vec<_> = std::thread::scope(|scope| {
        let attack = || (0..1000).map(|_| login("mallory", wrong)).collect();
        let attack = scope.spawn(attack);
        for nth in 0..200 {
            let status = ["200 OK", "302 Found"][nth % 2];
            let status = login(&format!("user{}", nth % 4), status);
            assert!(status < 400, "good users are never rejected");
        }
        attack.join().expect("no panic")
    });
    assert_eq!(attack[..5], [401; 5]);
    assert!(attack[5..].iter().all(|status| *status == 429));
    // A user who mistypes still has the other attempts.
    for _ in 0..4 {
        assert_eq!(login("user0", wrong), 401);
    }
    assert_eq!(login("user0", "200 OK"), 200);
    assert_eq!(login("user0", wrong), 401);
    assert_eq!(login("user0", "200 OK"), 429);
}

#[test]
fn the_access_log_has_the_charges() {
    let origin = obedient();
    let billed = "cost = { response_header = \"x-drip-cost\", max = 9 }";
    let routes = [
        ("/", ""),
        ("/fixed", "cost = 3"),
        ("/billed", billed),
        ("/refunded", "cost = 4\nrefund = [\"2xx\"]"),
    ];
    let limit = "burst = 20, nodelay = true";
    let gateway = Gateway::start(&file(&origin, "1r/h", limit, &routes));
    for (nth, cost) in [None, Some(3), Some(7), Some(0)].into_iter().enumerate() {
        ask(&gateway, routes[nth].0, "want-field: x-drip-cost: 7\r\n");
        let line = &gateway.access_log(nth + 1)[nth];
        assert_eq!(line.get("cost").and_then(Value::as_u64), cost, "{line}");
    }
}
