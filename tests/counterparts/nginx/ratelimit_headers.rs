//! The header fields that tell a client about its limits.

use std::time::Duration;

use crate::support::{Answer, Gateway, Origin, fetch};
use crate::support::{start_drip, zone};

fn told(answer: &Answer) -> [Option<&str>; 6] {
    [
        "x-ratelimit-limit",
        "x-ratelimit-remaining",
        "x-ratelimit-retry-after",
        "ratelimit-policy",
        "ratelimit",
        "server-timing",
    ]
    .map(|name| answer.field(name))
}

fn start(origin: &Origin, more: &str) -> Gateway {
    let limits = "limits = [{ zone = \"per_client\", burst = 2, nodelay = true }]";
    start_drip(
        origin,
        &zone("per_client", "$arg_a", "1r/m"),
        &[("/", &format!("{limits}\n{more}"))],
    )
}

#[test]
fn x_ratelimit_is_told_unless_the_file_says_otherwise() {
    let origin = Origin::start();
    let gateway = start(&origin, "");
    let rows: Vec<_> = (0..4).map(|_| fetch(gateway.address(), "/?a=1")).collect();
    let rows: Vec<_> = rows.iter().map(told).collect();
    let row = |remaining, retry| [Some("3"), Some(remaining), Some(retry), None, None, None];
    // After the third, the next one is a minute away.
    assert_eq!(rows[..2], [row("2", "0"), row("1", "0")]);
    assert_eq!(rows[2..], [row("0", "60"), row("0", "60")]);
}

#[test]
fn the_draft_of_the_ietf_names_the_policy_and_its_state() {
    let origin = Origin::start();
    let gateway = start(&origin, "headers = [\"ratelimit\"]");
    let answers: Vec<_> = (0..4).map(|_| fetch(gateway.address(), "/?a=1")).collect();
    let states: Vec<_> = answers
        .iter()
        .map(|answer| answer.field("ratelimit"))
        .collect();
    let expected =
        ["2;t=60", "1;t=60", "0;t=60", "0;t=60"].map(|state| format!("\"per_client\";r={state}"));
    assert_eq!(
        states,
        expected.each_ref().map(|state| Some(state.as_str()))
    );
    for answer in &answers {
        let policy = answer.field("ratelimit-policy");
        assert_eq!(policy, Some("\"per_client\";q=3;w=180"));
        assert_eq!(answer.field("x-ratelimit-limit"), None);
    }
}

#[test]
fn the_tightest_of_several_limits_is_told_and_the_draft_lists_them_all() {
    let origin = Origin::start();
    let zones = zone("wide", "$arg_a", "10r/s") + &zone("tight", "$arg_a", "1r/m");
    let limits = "limits = [{ zone = \"wide\", burst = 20, nodelay = true }, { zone = \"tight\", burst = 1 }]";
    let headers = "headers = [\"x-ratelimit\", \"ratelimit\"]";
    let gateway = start_drip(&origin, &zones, &[("/", &format!("{limits}\n{headers}"))]);
    let answer = fetch(gateway.address(), "/?a=1");
    assert_eq!(answer.number("x-ratelimit-limit"), 2);
    assert_eq!(answer.number("x-ratelimit-remaining"), 1);
    let policy = answer.field("ratelimit-policy").unwrap_or_default();
    assert!(policy.contains("\"wide\";q=21;w=3"), "{policy}");
    assert!(policy.contains("\"tight\";q=2;w=120"), "{policy}");
}

#[test]
fn server_timing_tells_how_long_a_request_queued() {
    let origin = Origin::start();
    let gateway = start_drip(
        &origin,
        &zone("z", "$arg_a", "5r/s"),
        &[(
            "/",
            "limits = [{ zone = \"z\", burst = 2 }]\nheaders = [\"server-timing\"]",
        )],
    );
    fetch(gateway.address(), "/?a=1");
    let answer = fetch(gateway.address(), "/?a=1");
    let timing = answer.field("server-timing").unwrap_or_default();
    let (queue, origin) = timing.split_once(", ").expect("two times");
    let millis = |text: &str, name: &str| {
        let millis = text.strip_prefix(name)?.strip_prefix(";dur=")?;
        millis.parse::<f64>().ok()
    };
    let queued = millis(queue, "queue").expect("a time");
    // The next turn would be 200 ms later.
    assert!((150.0..390.0).contains(&queued), "{timing}");
    let took = millis(origin, "origin").expect("a time");
    assert!(
        Duration::from_secs_f64(took / 1e3) < Duration::from_secs(1),
        "{timing}"
    );
}

#[test]
fn a_file_that_asks_for_no_fields_gets_none() {
    let origin = Origin::start();
    let gateway = start(&origin, "headers = []");
    for _ in 0..4 {
        assert_eq!(told(&fetch(gateway.address(), "/?a=1")), [None; 6]);
    }
}
