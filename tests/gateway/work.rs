//! Tests of costs learned from the time at the origin, with an origin of four workers.

use serde_json::Value;

use crate::support::operator::json;
use crate::support::workers::{LEARNED, Workers, ask, file, route};
use crate::support::{Gateway, eventually, exchange};

/// Returns what `/api/routes` reports about a method of a route.
fn cost(gateway: &Gateway, route: &str, method: &str) -> Value {
    let routes = json(gateway, "/api/routes");
    let mut routes = routes["routes"].as_array().expect("routes").iter();
    let found = routes.find(|it| it["name"] == *route).expect("a route");
    found["cost"]["methods"][method].clone()
}

#[test]
fn a_cost_is_learned_by_route_and_method_and_outlives_a_reload() {
    let workers = Workers::new();
    let origin = workers.origin();
    let routes = route("/page", LEARNED) + &route("/report", LEARNED);
    let text = file(&origin, "1000r/s", &routes);
    let gateway = Gateway::start(&text);
    assert_eq!(cost(&gateway, "/page", "GET"), Value::Null);
    for _ in 0..4 {
        assert_eq!(ask(&gateway, "/page", "X-Work: 200\r\n"), 200);
    }
    let page = cost(&gateway, "/page", "GET");
    assert_eq!(page["source"], "quiet");
    let learned = page["cost"].as_u64().expect("a cost");
    assert!((20..=40).contains(&learned), "{page}");
    // A new route, and a new method, count as the median of the others.
    let failed = "X-Work: 1\r\nX-Status: 500 No\r\n";
    assert_eq!(ask(&gateway, "/report", failed), 500);
    let report = cost(&gateway, "/report", "GET");
    assert_eq!(report["source"], "median");
    assert_eq!(report["cost"], page["cost"]);
    let post = b"POST /page HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nX-Work: 1\r\n\r\n";
    assert_eq!(exchange(gateway.address(), post).status, 200);
    assert_eq!(cost(&gateway, "/page", "POST")["source"], "median");
    // The metrics report it, too.
    let labels = [("route", "/page"), ("method", "GET")];
    assert_eq!(page["cost"], gateway.count("drip_route_cost", &labels));

    // Another unit: the time stays known, and with it the cost.
    gateway.site.write(&text.replace("10ms", "100ms"));
    eventually("the new unit", || {
        let page = cost(&gateway, "/page", "GET");
        let is_tenth = page["cost"]
            .as_u64()
            .is_some_and(|it| (2..=4).contains(&it));
        page["source"] == "quiet" && is_tenth
    });
}

#[test]
fn a_request_is_charged_what_it_took_and_a_stream_to_its_head() {
    let workers = Workers::new();
    let origin = workers.origin();
    let shadow = LEARNED.replace("200 }", "200, mode = \"shadow\" }");
    let routes = route("/page", LEARNED) + &route("/shadow", &shadow);
    let gateway = Gateway::start(&file(&origin, "1000r/s", &routes));
    let stream = "X-Work: 1\r\nX-Type: Text/Event-Stream; a=b\r\nX-Then: 600\r\n";
    // Nothing is known of the first request, so it is sent at once for 1, and billed afterwards.
    for fields in ["X-Work: 500\r\n", "X-Work: 1\r\n", stream] {
        assert_eq!(ask(&gateway, "/page", fields), 200);
    }
    for _ in 0..4 {
        assert_eq!(ask(&gateway, "/shadow", "X-Work: 100\r\n"), 200);
    }
    let shown = cost(&gateway, "/shadow", "GET");
    assert!(shown["cost"].as_u64() >= Some(10), "{shown}");
    let lines = gateway.access_log(7);
    let charged: Vec<_> = lines.iter().filter_map(|it| it["cost"].as_u64()).collect();
    assert!((50..=200).contains(&charged[0]), "{charged:?}");
    assert!(charged[1] < 50 && charged[2] < 50, "{charged:?}");
    assert_eq!(charged[3..], [1; 4]);
    // Headlines call the rate of such a gate units.
    let gate = || json(&gateway, "/api/now")["origins"][0]["gate"].clone();
    eventually("the rate counts units", || gate()["costs"] == true);
}

/// Nothing is learned or billed while the back-off lowers the origin's rate.
#[test]
fn nothing_is_learned_while_the_back_off_holds() {
    let workers = Workers::new();
    let origin = workers.origin();
    let backoff = "\n[origins.app.backoff]\ntrip = \"10%\"\n";
    let text = file(
        &origin,
        "1000r/s",
        &(backoff.to_owned() + &route("/page", LEARNED)),
    );
    let gateway = Gateway::start(&text);
    for _ in 0..4 {
        assert_eq!(ask(&gateway, "/page", "X-Work: 100\r\n"), 200);
    }
    let before = cost(&gateway, "/page", "GET");
    // Enough failures for a window.
    let is_lowered = || {
        let metrics = gateway.metrics();
        let rate = metrics.value("drip_origin_rate", &[("origin", "app"), ("of", "now")]);
        rate.is_some_and(|rate| rate < 999.0)
    };
    eventually("a cut", || {
        for _ in 0..4 {
            ask(&gateway, "/page", "X-Work: 1\r\nX-Status: 503 Busy\r\n");
        }
        is_lowered()
    });
    for _ in 0..12 {
        assert_eq!(ask(&gateway, "/page", "X-Work: 1\r\n"), 200);
    }
    assert!(is_lowered(), "the cut lasts for seconds");
    let after = cost(&gateway, "/page", "GET");
    assert_eq!(after["cost"], before["cost"]);
    assert!(after["requests"].as_u64() >= before["requests"].as_u64().map(|it| it + 12));
}
