//! Clients that ask for more than their limit, one after another.

use std::thread;
use std::time::Duration;

use super::driver::{RULE, Rule, text};
use super::scene::{begin, calm, file, headline, reported, sender};
use crate::support::night::day_or_night;
use crate::support::{Gateway, Origin, now};

/// The first one has far more rejections in the last minute for as long as the second one is told of.
#[test]
fn a_client_that_no_longer_sends_is_not_blamed_for_the_next_one() {
    let (first_sends, second_sends) = day_or_night((4, 2), (6, 3));
    let first_sends = Duration::from_secs(first_sends);
    let second_sends = Duration::from_secs(second_sends);
    let origin = Origin::start();
    let zone = "key = \"$http_x_api_key\"\nrate = \"5r/s\"";
    let gateway = Gateway::start(&file(&origin, zone, "burst = 2, nodelay = true"));
    let send = |field: &'static str| sender(gateway.address(), move |_| field.to_owned());
    begin(&gateway);
    let first = send("X-API-Key: first\r\n");
    thread::sleep(first_sends);
    drop(first);
    calm(&gateway);
    let _second = send("X-API-Key: second\r\n");
    let rule = Rule {
        cause: Some("rejecting"),
        says: &[r"second causes 100 % of the rejections\."],
        helps: &["One client asks for more than its limit"],
        ..RULE
    };
    reported(&gateway, &rule);
    let began = now();
    while began.elapsed() < second_sends {
        let told = headline(&gateway);
        let is_right = told["cause"] == "rejecting" && text(&told).contains("second causes");
        assert!(is_right, "{told:#}");
        thread::sleep(Duration::from_millis(200));
    }
}
