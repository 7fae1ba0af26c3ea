//! What was learned of the costs of requests, over a restart.

use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use super::{Chain, MS};
use crate::support::operator::json;
use crate::support::{Gateway, Origin, fetch};

fn file(origin: &Origin, routes: &str) -> String {
    format!(
        "[origins.app]\nservers = [\"http://{}\"]\nrate = \"1000r/s\"\nmax_in_flight = 10\n{routes}",
        origin.address
    )
}

fn route(path: &str, unit: &str) -> String {
    format!(
        "[[routes]]\npath = \"{path}\"\norigin = \"app\"\n\
         cost = {{ learn = \"time\", unit = \"{unit}\", max = 200 }}\n"
    )
}

/// What `/api/routes` says of the cost of a GET.
fn cost(gateway: &Gateway, name: &str) -> Value {
    let routes = json(gateway, "/api/routes");
    let mut routes = routes["routes"].as_array().expect("routes").iter();
    let found = routes.find(|it| it["name"] == *name).expect("a route");
    found["cost"]["methods"]["GET"].clone()
}

fn stop(mut gateway: Gateway) {
    gateway.signal(Signal::TERM);
    let ended = gateway.wait(Duration::from_secs(10));
    assert_eq!(ended.code(), Some(0), "{}", gateway.log());
}

#[test]
fn what_was_learned_of_costs_outlives_a_restart_and_is_learned_on() {
    let origin = Origin::answering(|exchange| {
        let is_report = exchange.target().starts_with("/report");
        thread::sleep(if is_report { 300 * MS } else { 20 * MS });
        exchange.reply(b"ok")
    });
    let rest = file(
        &origin,
        &(route("/page", "10ms") + &route("/report", "10ms")),
    );
    let mut chain = Chain::new(false, true, &rest);
    let gateway = chain.start();
    for path in ["/page", "/report"] {
        for _ in 0..4 {
            assert_eq!(fetch(chain.address, path).status, 200);
        }
    }
    let (page, report) = (cost(&gateway, "/page"), cost(&gateway, "/report"));
    assert_eq!(
        (&page["source"], &report["source"]),
        (&"quiet".into(), &"quiet".into())
    );
    assert!(report["cost"].as_u64() >= Some(30), "{report}");
    stop(gateway);

    // The same file: the first request of the next process costs what the last one did.
    let gateway = chain.start();
    for (name, before) in [("/page", &page), ("/report", &report)] {
        let after = cost(&gateway, name);
        assert_eq!(after["cost"], before["cost"], "{after}");
        assert_eq!(after["seconds"], before["seconds"], "{after}");
        assert_eq!(
            (&after["source"], &after["requests"]),
            (&"quiet".into(), &0.into())
        );
    }
    let labels = [("route", "/report"), ("method", "GET")];
    let told = gateway.metrics().count("drip_route_cost", &labels);
    assert_eq!(u64::try_from(told).ok(), report["cost"].as_u64());
    // It learns on from there: a fifth time is no first one.
    assert_eq!(fetch(chain.address, "/report").status, 200);
    assert_eq!(cost(&gateway, "/report")["source"], "quiet");
    stop(gateway);

    // Another unit, and another route in place of one: only what is still there goes on.
    chain.rest = file(
        &origin,
        &(route("/pages", "10ms") + &route("/report", "100ms")),
    );
    let gateway = chain.start();
    assert_eq!(cost(&gateway, "/pages"), Value::Null);
    let report = cost(&gateway, "/report");
    assert!(
        report["cost"]
            .as_u64()
            .is_some_and(|it| (3..=4).contains(&it)),
        "{report}"
    );
    stop(gateway);
}

#[test]
fn without_a_state_file_costs_are_learned_anew() {
    let origin = Origin::start();
    let chain = Chain::new(false, false, &file(&origin, &route("/page", "10ms")));
    let gateway = chain.start();
    for _ in 0..4 {
        assert_eq!(fetch(chain.address, "/page").status, 200);
    }
    assert_eq!(cost(&gateway, "/page")["source"], "quiet");
    stop(gateway);
    let gateway = chain.start();
    assert_eq!(cost(&gateway, "/page"), Value::Null);
    stop(gateway);
}
