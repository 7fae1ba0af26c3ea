//! How long an experiment waits for requests.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Crowd, body, experiment};
use crate::support::operator::{parse, post, send};
use crate::support::{Gateway, MS, Origin, now, one_origin};

const FILE: &str = "rate = \"40r/s\"\nqueue_timeout = \"60s\"\nmax_queue = 1000";

fn renew(gateway: &Gateway, id: &Value) {
    let renewed = send(
        gateway,
        "PUT",
        "/api/find/app",
        &json!({ "id": id }).to_string(),
    );
    assert_eq!(renewed.status, 200, "{}", parse(&renewed));
}

#[test]
#[ignore = "minutes: tests/run.sh long"]
fn wait_counts_from_when_nobody_waits_and_not_from_the_start() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_origin(origin.address, "", FILE));
    let crowd = Crowd::start(&gateway, 30);
    let more = r#", "min_step": "1s", "confirm": "10m", "wait": "8s""#;
    let (status, told) = post(&gateway, "/api/find", &body(more));
    assert_eq!(status, 200, "{told}");
    let id = told["id"].clone();
    let renew_for = |time: Duration| {
        let began = now();
        while began.elapsed() < time {
            renew(&gateway, &id);
            thread::sleep(200 * MS);
        }
    };
    renew_for(10_000 * MS);
    assert_eq!(crowd.end(), 0);
    // Longer than the shortest step, and later than 8 s after the start.
    renew_for(3_000 * MS);
    assert_eq!(experiment(&gateway)["state"], "running");
    let crowd = Crowd::start(&gateway, 30);
    renew_for(2_000 * MS);
    assert_eq!(experiment(&gateway)["state"], "running");
    assert_eq!(crowd.end(), 0);
    let began = now();
    while experiment(&gateway)["state"] == "running" {
        assert!(began.elapsed() < Duration::from_secs(40), "it goes on");
        renew(&gateway, &id);
        thread::sleep(200 * MS);
    }
    assert!(began.elapsed() >= 4_000 * MS, "{:?}", began.elapsed());
    let outcome = experiment(&gateway)["result"]["outcome"].clone();
    assert_eq!(outcome, "at_least");
}
