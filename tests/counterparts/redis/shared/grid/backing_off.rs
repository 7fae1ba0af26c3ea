//! Tests that the back-off of one gateway applies to all gateways that share the origin.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::{file, pass, rate_of, within};
use crate::programs::redis::Redis;
use crate::redis::shared::{busy, millis};
use crate::support::night::day_or_night;
use crate::support::{
    Gateway, Origin, assert_contains, best_of_three, eventually, now, quarter_alone,
};

const SHED: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";

/// Starts an origin that fails requests with `key=a` while the switch is on.
fn unwell() -> (Arc<AtomicBool>, Origin) {
    let switch = Arc::new(AtomicBool::new(false));
    let is_on = Arc::clone(&switch);
    let origin = Origin::answering(move |exchange| {
        if is_on.load(Ordering::SeqCst) && exchange.target().contains("key=a") {
            return exchange.send(SHED);
        }
        exchange.reply(b"ok")
    });
    (switch, origin)
}

fn gate(backoff: &str) -> String {
    format!(
        "rate = \"200r/s\"\nstore = \"redis\"\ngateways = 3\nmax_in_flight = 40\n[origins.app.backoff]\n{backoff}"
    )
}

fn rate_now(gateway: &Gateway) -> f64 {
    let labels = [("origin", "app"), ("of", "now")];
    let rate = gateway.value("drip_origin_rate", &labels);
    rate.expect("a gate")
}

/// Waits at most a second until all gateways have less than this rate.
fn wait_until_below(what: &str, gateways: &[&Gateway], rate: f64) {
    let began = now();
    while gateways.iter().any(|it| rate_now(it) >= rate) {
        let is_soon = began.elapsed() < Duration::from_secs(1);
        assert!(is_soon, "{what}: not within a second");
        thread::sleep(millis(20));
    }
    println!("{what} after {:?}", began.elapsed());
}

#[test]
fn a_cut_at_one_gateway_is_in_force_at_all_within_a_second() {
    let _machine = quarter_alone();
    let (is_bad, origin) = unwell();
    let redis = Redis::start();
    let text = file(&origin, &redis.url(), &gate("floor = \"25%\""));
    let gateways = [(); 3].map(|()| Gateway::start(&text));
    let [one, two, three] = &gateways;
    let crowds = [
        (one, 8, "/?key=a"),
        (two, 8, "/?key=b"),
        (three, 8, "/?key=c"),
    ];
    busy(&crowds, &[200, 503], || {
        pass(millis(day_or_night(1000, 2000)));
        is_bad.store(true, Ordering::SeqCst);
        eventually("one is cut", || rate_now(one) < 199.0);
        wait_until_below("the others are cut", &[two, three], 199.0);
        eventually("one is at the floor", || rate_now(one) < 50.5);
        wait_until_below("the others are at the floor", &[two, three], 50.5);
        // Slots granted before expire or are used.
        pass(millis(300));
        best_of_three(|_| {
            let span = pass(millis(day_or_night(1000, 2000)));
            let rate = rate_of(&within(&origin, "key=", span), span);
            if (44.0..53.0).contains(&rate) {
                return Ok(());
            }
            Err(format!("{rate} a second, not 50"))
        });
        let counted = |name: &str| {
            let labels = [("origin", "app"), ("reason", "trouble")];
            two.count(name, &labels)
        };
        assert!(counted("drip_origin_adopted_backoffs_total") > 0);
        assert_eq!(counted("drip_origin_backoffs_total"), 0);
        let api = two.admin("/api/origins").expect("it answers").text();
        let said = "answers to another gateway were trouble";
        assert_contains!(api, said);
    });
}

#[test]
fn a_shadow_cuts_nobody_and_follows_nobody() {
    let _machine = quarter_alone();
    let (is_bad, origin) = unwell();
    let redis = Redis::start();
    let start = |backoff| Gateway::start(&file(&origin, &redis.url(), &gate(backoff)));
    let (shadow, other) = (start("mode = \"shadow\""), start("floor = \"25%\""));
    is_bad.store(true, Ordering::SeqCst);
    let crowds = [(&shadow, 6, "/?key=a"), (&other, 6, "/?key=b")];
    busy(&crowds, &[200, 503], || {
        eventually("the shadow would be cut", || rate_now(&shadow) < 60.0);
        pass(millis(1500));
        assert!(rate_now(&other) > 199.0);
    });
    // The other way round.
    let crowds = [(&shadow, 6, "/?key=b"), (&other, 6, "/?key=a")];
    busy(&crowds, &[200, 503], || {
        eventually("one is cut", || rate_now(&other) < 60.0);
        pass(millis(1500));
        let labels = [("origin", "app"), ("reason", "trouble")];
        let adopted = "drip_origin_adopted_backoffs_total";
        assert_eq!(shadow.count(adopted, &labels), 0);
    });
}
