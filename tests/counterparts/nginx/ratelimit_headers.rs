//! Tests of the header fields that inform a client about its limits.

use crate::support::{Origin, assert_contains, start_drip, zone};

#[rustfmt::skip]
const NAMES: [&str; 6] = [
    "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-retry-after", "ratelimit-policy",
    "ratelimit", "server-timing",
];

#[test]
fn a_client_gets_the_limit_headers_of_the_configured_families() {
    let origin = Origin::start();
    let zones = zone("per_client", "$arg_a", "1r/m");
    let limits = "limits = [{ zone = \"per_client\", burst = 2, nodelay = true }]";
    // After the third request, the next one is a minute away.
    for (headers, expected) in [
        ("", [["3 2 0", "3 1 0", "3 0 60", "3 0 60"], [""; 4]]),
        (
            "headers = [\"ratelimit\"]",
            [[""; 4], ["2;t=60", "1;t=60", "0;t=60", "0;t=60"]],
        ),
        ("headers = []", [[""; 4]; 2]),
    ] {
        let routes = [("/", &*format!("{limits}\n{headers}"))];
        let gateway = start_drip(&origin, &zones, &routes);
        for (nth, (x, draft)) in std::iter::zip(expected[0], expected[1]).enumerate() {
            let answer = gateway.fetch("/?a=1");
            let received = NAMES.map(|name| answer.field(name).unwrap_or_default());
            assert_eq!(received[..3].join(" ").trim(), x, "{headers} {nth}");
            let draft = match draft {
                "" => [String::new(), String::new()],
                state => ["q=3;w=180".to_owned(), format!("r={state}")]
                    .map(|it| format!("\"per_client\";{it}")),
            };
            let expected = [&*draft[0], &*draft[1], ""];
            assert_eq!(received[3..], expected, "{headers} {nth}");
        }
    }
}

#[test]
fn the_tightest_of_several_limits_is_sent_and_the_draft_lists_all() {
    let origin = Origin::start();
    let zones = zone("wide", "$arg_a", "10r/s") + &zone("tight", "$arg_a", "1r/m");
    let limits = "limits = [{ zone = \"wide\", burst = 20, nodelay = true }, { zone = \"tight\", burst = 1 }]";
    let headers = "headers = [\"x-ratelimit\", \"ratelimit\"]";
    let gateway = start_drip(&origin, &zones, &[("/", &format!("{limits}\n{headers}"))]);
    let answer = gateway.fetch("/?a=1");
    assert_eq!(answer.number("x-ratelimit-limit"), 2);
    assert_eq!(answer.number("x-ratelimit-remaining"), 1);
    let policy = answer.field("ratelimit-policy").unwrap_or_default();
    assert_contains!(policy, "\"wide\";q=21;w=3", "\"tight\";q=2;w=120");
}

#[test]
fn server_timing_has_the_time_in_the_queue() {
    let origin = Origin::start();
    let fields = "limits = [{ zone = \"z\", burst = 2 }]\nheaders = [\"server-timing\"]";
    let gateway = start_drip(&origin, &zone("z", "$arg_a", "5r/s"), &[("/", fields)]);
    gateway.fetch("/?a=1");
    let answer = gateway.fetch("/?a=1");
    let timing = answer.field("server-timing").unwrap_or_default();
    let millis = |name: &str| {
        let parts = timing.split(", ");
        let part = parts.filter_map(|it| it.strip_prefix(name)?.strip_prefix(";dur="));
        part.flat_map(str::parse::<f64>).next().expect("a time")
    };
    // The next slot would be 200 ms later.
    assert!((150.0..390.0).contains(&millis("queue")), "{timing}");
    assert!(millis("origin") < 1000.0, "{timing}");
}
