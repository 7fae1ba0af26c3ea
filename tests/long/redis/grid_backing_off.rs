//! Tests of gateways that back off together, until the full rate is back.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::programs::redis::Redis;
use crate::redis::shared::grid::backing_off::{
    SHED, Three, busy, counted, gate, now_of, rate_now, unwell, within_span,
};
use crate::redis::shared::grid::{file, millis, pass, within};
use crate::support::{Gateway, Origin, eventually, half_alone, now};

const ASKS_TO_WAIT: &str =
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 3\r\nContent-Length: 0\r\n\r\n";

fn longest_gap(moments: &[Instant]) -> Duration {
    let gaps = moments.windows(2).map(|two| two[1] - two[0]);
    gaps.max().unwrap_or_default()
}

#[test]
fn a_pause_that_one_is_asked_for_holds_at_all() {
    let _machine = half_alone();
    let (is_bad, origin) = unwell(Some(ASKS_TO_WAIT));
    let three = Three::start(&origin, "");
    let all = three.all();
    busy(&all, 4, || {
        pass(millis(2000));
        let began = now();
        is_bad.store(true, Ordering::SeqCst);
        eventually("one pauses", || {
            counted(all[0], "drip_origin_backoffs_total", "retry_after") > 0
        });
        pass(millis(1000));
        is_bad.store(false, Ordering::SeqCst);
        let span = (began, pass(millis(4000)).1);
        let moments = within(&origin, "key=", span);
        let gap = longest_gap(&moments);
        println!("nothing arrives for {gap:?}");
        assert!(gap > millis(2200), "{gap:?}");
        for gateway in &all[1..] {
            assert!(counted(gateway, "drip_origin_adopted_backoffs_total", "retry_after") > 0);
        }
    });
}

#[test]
fn an_origin_that_is_slow_to_one_has_fewer_at_once_from_all() {
    let _machine = half_alone();
    let (is_bad, origin) = unwell(None);
    let three = Three::start(&origin, "slow = \"250ms\"");
    let all = three.all();
    let places = |it: &Gateway| now_of(it, "drip_origin_in_flight_limit");
    busy(&all, 8, || {
        pass(millis(2000));
        is_bad.store(true, Ordering::SeqCst);
        eventually("one is cut", || places(all[0]) < 40.0);
        let took = within_span("all are cut", millis(1000), || {
            all[1..].iter().all(|it| places(it) < 40.0)
        });
        println!("the others are cut {took:?} later");
        is_bad.store(false, Ordering::SeqCst);
        let back = within_span("all are back", Duration::from_secs(45), || {
            all.iter().all(|it| places(it) > 39.0)
        });
        println!("back after {back:?}");
    });
}

/// Starts an origin that processes one request at a time and counts its requests.
fn crowded(each: Duration) -> (Arc<[AtomicU32; 2]>, Origin) {
    let counts = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let at_once = Arc::clone(&counts);
    let works = Mutex::new(());
    let origin = Origin::answering(move |exchange| {
        let [here, most] = &*at_once;
        let there = here.fetch_add(1, Ordering::SeqCst) + 1;
        most.fetch_max(there, Ordering::SeqCst);
        let turn = works.lock();
        thread::sleep(each);
        drop(turn);
        here.fetch_sub(1, Ordering::SeqCst);
        exchange.reply(b"ok")
    });
    (counts, origin)
}

/// The permits left by back-off are those of all gateways together, not of each.
///
/// Five requests are answered in time.
#[test]
fn places_that_are_cut_are_those_of_all_gateways_together() {
    let _machine = half_alone();
    let (at_origin, origin) = crowded(millis(50));
    let redis = Redis::start();
    let gate = "store = \"redis\"\ngateways = 3\nmax_in_flight = 18\n[origins.app.backoff]\nslow = \"250ms\"";
    let text = file(&origin, &redis.url(), gate);
    let gateways: Vec<_> = (0..3).map(|_| Gateway::start(&text)).collect();
    let all: Vec<_> = gateways.iter().collect();
    let places = |it: &Gateway| now_of(it, "drip_origin_in_flight_limit");
    busy(&all, 10, || {
        eventually("all have been cut to what is in time", || {
            all.iter().all(|it| places(it) <= 9.0)
        });
        // Earlier requests have ended, and the pool has learned the new limit.
        pass(millis(2000));
        for _ in 0..5 {
            let before = all.iter().map(|it| places(it)).fold(0.0, f64::max);
            at_origin[1].store(0, Ordering::SeqCst);
            pass(millis(1000));
            let after = all.iter().map(|it| places(it)).fold(0.0, f64::max);
            let most = at_origin[1].load(Ordering::SeqCst);
            println!("{before} and {after} by back-off, {most} at the origin at once");
            // A request whose response is on its way to the gateway is not at the origin any more.
            let bound = before.max(after) + 1.0;
            assert!(f64::from(most) <= bound, "{most} at once");
        }
    });
}

#[test]
fn without_redis_each_backs_off_alone_and_tells_when_it_is_back() {
    let _machine = half_alone();
    let (is_bad, origin) = unwell(Some(SHED));
    let mut three = Three::start(&origin, "floor = \"25%\"");
    let Three { redis, gateways } = &mut three;
    let all: Vec<_> = gateways.iter().collect();
    busy(&all, 8, || {
        pass(millis(2000));
        redis.kill();
        pass(millis(500));
        is_bad.store(true, Ordering::SeqCst);
        eventually("one is at the floor", || rate_now(all[0]) < 50.5);
        assert!(all[1..].iter().all(|it| rate_now(it) > 199.0));
        redis.restart();
        let took = within_span("all are cut", millis(3000), || {
            all[1..].iter().all(|it| rate_now(it) < 60.0)
        });
        println!("the others are cut {took:?} after Redis is back");
        redis.kill();
        pass(millis(1000));
        assert!(all.iter().all(|it| rate_now(it) < 60.0), "they stay cut");
        is_bad.store(false, Ordering::SeqCst);
        let back = within_span("all are back", Duration::from_secs(60), || {
            all.iter().all(|it| rate_now(it) > 199.0)
        });
        println!("back after {back:?} without Redis");
    });
}

#[test]
fn a_shadow_cuts_nobody_and_follows_nobody() {
    let _machine = half_alone();
    let (is_bad, origin) = unwell(Some(SHED));
    let redis = Redis::start();
    let shadow = file(&origin, &redis.url(), &gate("mode = \"shadow\""));
    let acts = file(&origin, &redis.url(), &gate("floor = \"25%\""));
    let shadow = Gateway::start(&shadow);
    let others = [Gateway::start(&acts), Gateway::start(&acts)];
    is_bad.store(true, Ordering::SeqCst);
    busy(&[&shadow, &others[0], &others[1]], 6, || {
        eventually("the shadow would be cut", || rate_now(&shadow) < 60.0);
        pass(millis(1500));
        assert!(others.iter().all(|it| rate_now(it) > 199.0));
    });
    // The other way round.
    busy(&[&others[0], &shadow, &others[1]], 6, || {
        eventually("one is cut", || rate_now(&others[0]) < 60.0);
        eventually("the other one, too", || rate_now(&others[1]) < 60.0);
        assert_eq!(
            counted(&shadow, "drip_origin_adopted_backoffs_total", "trouble"),
            0
        );
    });
}
