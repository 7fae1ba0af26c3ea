//! Tests that gateways with a shared zone give the origin one even stream.

use std::thread;
use std::time::Duration;

use crate::programs::redis::Redis;
use crate::redis::shared::{count_within, file, steady_rate, under_load};
use crate::support::night::day_or_night;
use crate::support::{Gateway, Origin, best_of_three, gaps, now, quarter_alone};

const RATE: f64 = 200.0;

/// Three gateways with one saturated key give the origin a stream as even as a single one does.
#[test]
fn three_gateways_give_the_origin_one_even_stream() {
    let _machine = quarter_alone();
    let redis = Redis::start();
    best_of_three(|_| {
        let origin = Origin::start();
        let rate = format!("{RATE}r/s");
        let text = file(&origin, &redis.url(), &rate, "", ", burst = 100");
        let gateways = [(); 3].map(|()| Gateway::start(&text));
        let all: Vec<&Gateway> = gateways.iter().collect();
        let mut span = None;
        under_load(&all, 20, "/?key=a", Duration::ZERO, || {
            thread::sleep(Duration::from_millis(500));
            let began = now();
            thread::sleep(Duration::from_millis(day_or_night(1500, 5000)));
            span = Some((began, now()));
        });
        let (from, until) = span.expect("it ran");
        let moments = origin.moments("key=a");
        let steady: Vec<_> = moments
            .iter()
            .filter(|at| (from..until).contains(*at))
            .copied()
            .collect();
        let seconds = (until - from).as_secs_f64();
        #[allow(clippy::cast_precision_loss)]
        let counted = count_within(&moments, from, until) as f64 / seconds;
        let rate = day_or_night(steady_rate(&steady, RATE), counted);
        if (rate / RATE - 1.0).abs() > 0.01 {
            return Err(format!("{rate:.2}r/s, not {RATE}r/s within 1 %"));
        }
        // Two separate buckets would send pairs at the same time. A busy machine delays some
        // requests.
        let gaps = gaps(&steady);
        let even =
            |gap: &&Duration| gap.abs_diff(Duration::from_millis(5)) < Duration::from_millis(2);
        let even = gaps.iter().filter(even).count();
        let is_even = even * 100 >= gaps.len() * 85;
        if day_or_night(false, !is_even) {
            return Err(format!("{even} of {} gaps are even: {gaps:?}", gaps.len()));
        }
        let shares: Vec<i64> = all
            .iter()
            .map(|gateway| gateway.zone("drip_zone_requests_total"))
            .collect();
        if shares.iter().any(|share| *share < day_or_night(30, 100)) {
            return Err(format!("not all of them have their part: {shares:?}"));
        }
        Ok(())
    });
}

#[test]
fn one_who_leaves_gives_its_time_to_the_next_and_the_last_one_back() {
    let (origin, redis) = (Origin::start(), Redis::start());
    let text = file(&origin, &redis.url(), "2r/s", "", ", burst = 10");
    let (one, other) = (Gateway::start(&text), Gateway::start(&text));
    let began = now();
    let ask = |gateway: &Gateway, who: &str| {
        let client = crate::support::Client::ask(gateway.address(), &format!("/?key=a&{who}"));
        thread::sleep(Duration::from_millis(30));
        client
    };
    let _first = ask(&one, "first");
    let leaver = ask(&one, "leaver");
    let _behind = ask(&one, "behind");
    one.wait_for_depth(2);
    drop(leaver);
    one.wait_for_depth(1);
    thread::sleep(Duration::from_millis(50));
    // The next request gets the slot of the disconnected one at 500 ms, which frees the slot behind
    // it.
    let _last = ask(&other, "last");
    origin.wait_for(3);
    let after = |who: &str| origin.moments(who)[0] - began;
    let (behind, last) = (after("behind"), after("last"));
    assert!(origin.moments("leaver").is_empty());
    assert!((400..800).contains(&behind.as_millis()), "{behind:?}");
    assert!((900..1300).contains(&last.as_millis()), "{last:?}");
}
