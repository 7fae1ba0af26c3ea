//! How long an experiment waits for requests.

use std::thread;
use std::time::Duration;

use jiff::Timestamp;

use super::{body, experiment, rate};
use crate::gateway::operator::{parse, post, send};
use crate::support::{Gateway, MS, Origin, now, one_origin};

const FILE: &str = "rate = \"40r/s\"\nqueue_timeout = \"60s\"\nmax_queue = 1000";

#[test]
fn it_waits_for_requests_until_a_time_and_no_longer() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_origin(origin.address, "", FILE));
    let until = Timestamp::now() + Duration::from_secs(12);
    let more = format!(r#", "min_step": "1s", "until": "{until}""#);
    let began = now();
    let (status, told) = post(&gateway, "/api/find", &body(&more));
    assert_eq!((status, &told["state"]), (200, &"running".into()), "{told}");
    assert!(told["until"].is_string(), "{told}");
    while experiment(&gateway)["state"] == "running" {
        assert!(began.elapsed() < Duration::from_secs(40), "it goes on");
        let renewed = send(&gateway, "PUT", "/api/find/app", r#"{"id": 1}"#);
        assert_eq!(renewed.status, 200, "{}", parse(&renewed));
        thread::sleep(200 * MS);
    }
    assert!(began.elapsed() >= 11_500 * MS, "{:?}", began.elapsed());
    assert_eq!(experiment(&gateway)["outcomes"][0]["outcome"], "at_least");
    assert_eq!(rate(&gateway), "40r/s");
}
