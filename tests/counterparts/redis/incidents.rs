//! Checks that the operator is informed of a Redis outage, by the rule of `tests/incidents`.

#[allow(dead_code, unused_imports, reason = "the other binary uses the rest")]
#[path = "../../incidents/driver/mod.rs"]
mod driver;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use driver::{Incident, Is, RULE, Rule, Series, Severity};

use crate::programs::redis::Redis;
use crate::support::operator::json;
use crate::support::{Client, Done, Gateway, Origin, file};

const STORE_OUT: Rule = Rule {
    severity: Severity::Bad,
    cause: Some("store_out"),
    says: &["Redis|store", r"\bout\b", "on_store_failure|local"],
    helps: &["Bring Redis"],
    never: &["raise .*rate", r"\bapp\b"],
    metrics: &[Series {
        name: "drip_store_up",
        labels: &[],
        is: Is::Exactly(0.0),
    }],
    ..RULE
};

#[test]
fn lost_redis_is_reported_with_its_effects() {
    let mut redis = Redis::start();
    let origin = Origin::start();
    let zones = format!(
        "[redis]\nurl = \"{}\"\ntimeout = \"1s\"\n[zones.team]\nkey = \"$arg_team\"\n\
         rate = \"1000r/s\"\nstore = \"redis\"\n",
        redis.url()
    );
    let limits = "limits = [{ zone = \"team\", burst = 1000, nodelay = true }]";
    let gateway = Gateway::start(&file(&origin, &zones, &[("/", limits)]));
    let stop = AtomicBool::new(false);
    let ask = || {
        while !stop.load(Ordering::SeqCst) {
            // The state of the store determines the response.
            let _answer = Client::try_fetch(gateway.address(), "/?team=blue");
            thread::sleep(Duration::from_millis(40));
        }
    };
    thread::scope(|scope| {
        scope.spawn(ask);
        let _stop = Done(&stop);
        let mut incident = Incident::begin(&gateway, &STORE_OUT, || redis.kill());
        let headline = incident.reported();
        let title = headline["title"].as_str().expect("a title");
        // The seconds in the title change.
        let title = title.trim_end_matches(|c: char| c.is_ascii_digit() || " .ms".contains(c));
        let top = gateway.top();
        assert!(top.contains(title), "no {title:?} in {top}");
        incident.end(|| redis.restart());
    });
    let headlines = json(&gateway, "/api/headline");
    let history = headlines["history"].as_array().expect("a list").iter();
    let causes: Vec<_> = history.map(|it| &it["headline"]["cause"]).collect();
    assert_eq!(causes, ["store_out"]);
}
