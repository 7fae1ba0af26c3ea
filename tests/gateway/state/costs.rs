//! Tests that learned costs survive a restart.

use std::thread;

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

/// Returns what `/api/routes` reports about the cost of a GET.
fn cost(gateway: &Gateway, name: &str) -> Value {
    let routes = json(gateway, "/api/routes");
    let mut routes = routes["routes"].as_array().expect("routes").iter();
    let found = routes.find(|it| it["name"] == *name).expect("a route");
    found["cost"]["methods"]["GET"].clone()
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
    let mut gateway = chain.start();
    assert_eq!(cost(&gateway, "/page"), Value::Null);
    for path in ["/page", "/report"] {
        for _ in 0..4 {
            assert_eq!(fetch(chain.address, path).status, 200);
        }
    }
    let [page, report] = ["/page", "/report"].map(|it| cost(&gateway, it));
    assert_eq!(page["source"], "quiet");
    assert_eq!(report["source"], "quiet");
    assert!(report["cost"].as_u64() >= Some(30), "{report}");
    Chain::stop(&mut gateway);

    // The same file: the first request of the next process costs what the last one did.
    let mut gateway = chain.start();
    for (name, before) in [("/page", &page), ("/report", &report)] {
        let after = cost(&gateway, name);
        for field in ["cost", "seconds", "source"] {
            assert_eq!(after[field], before[field], "{after}");
        }
        assert_eq!(after["requests"], 0, "{after}");
    }
    let labels = [("route", "/report"), ("method", "GET")];
    assert_eq!(report["cost"], gateway.count("drip_route_cost", &labels));
    // Learning continues: the next measurement is not treated as a first one.
    assert_eq!(fetch(chain.address, "/report").status, 200);
    assert_eq!(cost(&gateway, "/report")["source"], "quiet");
    Chain::stop(&mut gateway);

    // Another unit, and a route replaced by another: only unchanged routes keep their costs.
    chain.rest = file(
        &origin,
        &(route("/pages", "10ms") + &route("/report", "100ms")),
    );
    let gateway = chain.start();
    assert_eq!(cost(&gateway, "/pages"), Value::Null);
    let report = cost(&gateway, "/report")["cost"].as_u64();
    assert!(report.is_some_and(|it| (3..=4).contains(&it)), "{report:?}");
}
