//! `/metrics` as promtool checks it.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::programs::redis::Redis;
use crate::prometheus::server::missing;
use crate::support::{Client, Gateway, Origin, eventually, fetch, one_origin};

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
fn promtool_takes_the_metrics_of_a_gate_that_gateways_share() {
    let (origin, redis) = (Origin::start(), Redis::start());
    let gateway = Gateway::start(&format!(
        "[origins.app]\nservers = [\"http://{}\"]\nrate = \"100r/s\"\nstore = \"redis\"\n\
         [redis]\nurl = \"{}\"\n[[routes]]\npath = \"/\"\norigin = \"app\"\n",
        origin.address,
        redis.url()
    ));
    assert_eq!(fetch(gateway.address(), "/").status, 200);
    let labels = [("origin", "app")];
    eventually("it is told that it is alone", || {
        gateway.metrics().value("drip_origin_gateways", &labels) == Some(1.0)
    });
    let metrics = gateway.metrics();
    assert_eq!(metrics.value("drip_origin_part", &labels), Some(1.0));
    for (result, count) in [("used", 1), ("lapsed", 0)] {
        let labels = [("origin", "app"), ("result", result)];
        assert_eq!(metrics.count("drip_origin_slots_total", &labels), count);
    }
    check(&metrics.0);
}

#[test]
fn promtool_takes_the_metrics_of_a_gateway_with_a_gate() {
    let origin = Origin::start();
    let gateway = Gateway::start(&format!(
        "[origins.app]\nservers = [\"http://{}\"]\nrate = \"1r/m\"\nmax_in_flight = 3\nmax_queue = 1\n\
         queue_timeout = \"60s\"\nclasses = {{ interactive = 8, batch = 1 }}\n\
         [zones.z]\nkey = \"$arg_key\"\nrate = \"10r/s\"\n\
         [zones.z.plans.gold]\nkeys = [\"a\"]\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{{ zone = \"z\", burst = 5 }}]\n",
        origin.address
    ));
    assert_eq!(fetch(gateway.address(), "/?key=a").status, 200);
    let _waiting = Client::ask(gateway.address(), "/?key=b");
    let depth = |gateway: &Gateway| {
        let labels = [("origin", "app")];
        gateway.metrics().count("drip_origin_queue_depth", &labels)
    };
    eventually("one waits at the gate", || depth(&gateway) == 1);
    assert_eq!(fetch(gateway.address(), "/?key=c").status, 503);
    let text = gateway.metrics().0;
    for counter in [
        "drip_origin_blocked_seconds_total",
        "drip_origin_class_requests_total",
        "drip_plan_requests_total",
    ] {
        assert!(
            text.contains(&format!("# TYPE {counter} counter")),
            "{counter}"
        );
    }
    check(&text);
}

#[test]
fn promtool_takes_the_metrics_of_a_gateway_whose_route_collapses() {
    let origin = Origin::start();
    let file = one_origin(origin.address, "", "");
    let gateway = Gateway::start(&format!("{file}[routes.collapse]\nkeep = \"1h\"\n"));
    for _ in 0..2 {
        assert_eq!(fetch(gateway.address(), "/").status, 200);
    }
    check(&gateway.metrics().0);
}

#[test]
fn promtool_takes_the_metrics_of_a_gateway_with_a_waiting_room() {
    let origin = Origin::start();
    let gateway = Gateway::start(&format!(
        "[origins.app]\nservers = [\"http://{}\"]\n\
         [origins.app.room]\nsessions = 1\nadmit = \"1r/s\"\nsecret = \"0123456789abcdef\"\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n",
        origin.address
    ));
    assert_eq!(fetch(gateway.address(), "/").status, 200);
    assert_eq!(fetch(gateway.address(), "/").status, 429);
    check(&gateway.metrics().0);
}
