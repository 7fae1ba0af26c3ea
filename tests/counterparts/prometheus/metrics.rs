//! `/metrics` as promtool checks it.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::programs::redis::Redis;
use crate::prometheus::server::missing;
use crate::support::{Client, Gateway, Origin, eventually, fetch};

/// Fails if the text is not valid, or a name is against Prometheus' conventions.
fn check(text: &str) {
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| missing("promtool", &error));
    let mut input = promtool.stdin.take().expect("its input");
    input.write_all(text.as_bytes()).expect("promtool reads");
    drop(input);
    let output = promtool.wait_with_output().expect("promtool ends");
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn promtool_takes_the_metrics_of_gates_a_room_and_a_route_that_collapses() {
    let (origin, redis) = (Origin::start(), Redis::start());
    let mut file = format!(
        "[redis]\nurl = \"{}\"\n[zones.z]\nkey = \"$arg_key\"\nrate = \"10r/s\"\n\
         [zones.z.plans.gold]\nkeys = [\"a\"]\n",
        redis.url()
    );
    for (name, of_origin, of_route) in [
        ("shared", "rate = \"100r/s\"\nstore = \"redis\"", ""),
        (
            "gated",
            "rate = \"1r/m\"\nmax_in_flight = 3\nmax_queue = 1\nqueue_timeout = \"60s\"\n\
             classes = { interactive = 8, batch = 1 }",
            "limits = [{ zone = \"z\", burst = 5 }]",
        ),
        ("collapse", "", "[routes.collapse]\nkeep = \"1h\""),
        (
            "room",
            "room = { sessions = 1, admit = \"1r/s\", secret = \"0123456789abcdef\" }",
            "",
        ),
    ] {
        file += &format!(
            "[origins.{name}]\nservers = [\"http://{}\"]\n{of_origin}\n\
             [[routes]]\npath = \"/{name}\"\norigin = \"{name}\"\n{of_route}\n",
            origin.address
        );
    }
    let gateway = Gateway::start(&file);
    let status = |path| fetch(gateway.address(), path).status;
    assert_eq!(status("/shared"), 200);
    let labels = [("origin", "shared")];
    eventually("it is told that it is alone", || {
        gateway.metrics().value("drip_origin_gateways", &labels) == Some(1.0)
    });
    assert_eq!(status("/gated?key=a"), 200);
    let _waiting = Client::ask(gateway.address(), "/gated?key=b");
    let gated = [("origin", "gated")];
    eventually("one waits at the gate", || {
        gateway.metrics().count("drip_origin_queue_depth", &gated) == 1
    });
    assert_eq!(status("/gated?key=c"), 503);
    assert_eq!([(); 2].map(|()| status("/collapse")), [200; 2]);
    assert_eq!([(); 2].map(|()| status("/room")), [200, 429]);

    let metrics = gateway.metrics();
    assert_eq!(metrics.value("drip_origin_part", &labels), Some(1.0));
    for (result, count) in [("used", 1), ("lapsed", 0)] {
        let labels = [("origin", "shared"), ("result", result)];
        assert_eq!(metrics.count("drip_origin_slots_total", &labels), count);
    }
    for counter in [
        "drip_origin_blocked_seconds_total",
        "drip_origin_class_requests_total",
        "drip_plan_requests_total",
    ] {
        let kind = format!("# TYPE {counter} counter");
        assert!(metrics.0.contains(&kind), "{counter}");
    }
    check(&metrics.0);
}
