//! Clients that ask for more than their limit, one after another.

use std::thread;
use std::time::Duration;

use super::scene::{Sender, Wanted, begin, calm, file, headline, text, told};
use crate::support::{Gateway, Origin, now};

/// The first one has far more rejections in the last minute for as long as the second one is told of.
#[test]
fn a_client_that_no_longer_sends_is_not_blamed_for_the_next_one() {
    const FIRST_SENDS: Duration = Duration::from_secs(6);
    const SECOND_SENDS: Duration = Duration::from_secs(3);
    let origin = Origin::start();
    let zone = "key = \"$http_x_api_key\"\nrate = \"5r/s\"";
    let gateway = Gateway::start(&file(&origin, zone, "burst = 2, nodelay = true"));
    let send = |field: &'static str| Sender::start(gateway.address(), move |_| field.to_owned());
    begin(&gateway);
    let sender = send("X-API-Key: first\r\n");
    thread::sleep(FIRST_SENDS);
    drop(sender);
    calm(&gateway);
    let _sender = send("X-API-Key: second\r\n");
    let wanted = Wanted {
        cause: "rejecting",
        is_bad: false,
        says: &["second causes 100 % of the rejections."],
        remedy: "One client asks for more than its limit",
    };
    told(&gateway, &wanted);
    let began = now();
    while began.elapsed() < SECOND_SENDS {
        let told = headline(&gateway);
        let is_right = told["cause"] == "rejecting" && text(&told).contains("second causes");
        assert!(is_right, "{told:#}");
        thread::sleep(Duration::from_millis(200));
    }
}
