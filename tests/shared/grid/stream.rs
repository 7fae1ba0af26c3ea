use std::time::Duration;

use crate::support::redis::Redis;
use crate::support::{Gateway, Origin, best_of_three, eventually, fetch, gaps, half_alone, now};

use super::{
    Crowd, busy, check_rate, check_windows, file, gauge, millis, pass, shared, unevenness, within,
};

/// Three gateways with loads of different kinds: the origin sees one stream at the rate.
#[test]
fn three_gateways_with_different_loads_give_the_origin_one_even_stream() {
    let _machine = half_alone();
    let redis = Redis::start();
    best_of_three(|attempt| {
        let origin = Origin::start();
        // Each attempt has a grid of its own.
        let text = file(&origin, &redis.url(), &shared("200r/s")).replace(
            "timeout = \"200ms\"",
            &format!("timeout = \"200ms\"\nprefix = \"{attempt}:\""),
        );
        let [one, two, three] = [(); 3].map(|()| Gateway::start(&text));
        let crowds = [
            Crowd::of(&one, "/?key=a", 20),
            Crowd::of(&one, "/?key=b", 5),
            Crowd::of(&two, "/?key=c", 10),
            Crowd::of(&three, "/?key=d", 1),
        ];
        let span = busy(&crowds, || {
            pass(millis(500));
            pass(Duration::from_secs(5))
        });
        let moments = within(&origin, "key=", span);
        check_rate(&moments, span, 200.0)?;
        check_windows(&moments, 200.0, millis(15))?;
        let uneven = unevenness(&moments);
        let gaps = gaps(&moments);
        let even = |gap: &&Duration| gap.abs_diff(millis(5)) < millis(2);
        let even = gaps.iter().filter(even).count();
        if even * 100 < gaps.len() * 85 {
            return Err(format!(
                "{even} of {} gaps are even, cv {uneven:.2}",
                gaps.len()
            ));
        }
        for gateway in [&one, &two, &three] {
            assert_eq!(gauge(gateway, "drip_origin_shared"), Some(1.0));
            assert_eq!(gauge(gateway, "drip_origin_gateways"), Some(3.0));
            let labels = [("origin", "app"), ("result", "used")];
            let used = gateway.metrics().count("drip_origin_slots_total", &labels);
            assert!(used > 50, "{used}");
        }
        Ok(())
    });
}

#[test]
fn an_idle_origin_answers_a_single_request_at_once() {
    let (origin, redis) = (Origin::start(), Redis::start());
    let text = file(&origin, &redis.url(), &shared("2r/s"));
    let (one, other) = (Gateway::start(&text), Gateway::start(&text));
    best_of_three(|_| {
        // The last slot is long ago.
        pass(millis(700));
        let began = now();
        assert_eq!(fetch(one.address(), "/?key=a").status, 200);
        let took = began.elapsed();
        if took > millis(50) {
            return Err(format!("{took:?}"));
        }
        // The next slot is for whoever asks, at any of them.
        assert_eq!(fetch(other.address(), "/?key=a").status, 200);
        let took = began.elapsed();
        if took.abs_diff(millis(500)) > millis(60) {
            return Err(format!("{took:?}, not 500 ms"));
        }
        Ok(())
    });
}

/// Who has nothing waiting leaves all to the other, and gets its part when it comes.
#[test]
fn one_alone_gets_everything_and_one_who_comes_gets_its_part_at_once() {
    let _machine = half_alone();
    let (origin, redis) = (Origin::start(), Redis::start());
    let text = file(&origin, &redis.url(), &shared("200r/s"));
    let (one, other) = (Gateway::start(&text), Gateway::start(&text));
    eventually("both are known", || {
        gauge(&one, "drip_origin_gateways") == Some(2.0)
    });
    best_of_three(|_| {
        let at_one = [Crowd::of(&one, "/?key=a", 20)];
        let at_other = [Crowd::of(&other, "/?key=b", 20)];
        busy(&at_one, || {
            pass(millis(200));
            let alone = pass(millis(1500));
            check_rate(&within(&origin, "key=a", alone), alone, 200.0)?;
            let began = now();
            let (second, both) = busy(&at_other, || (pass(millis(100)), pass(millis(1500))));
            let first = within(&origin, "key=b", (began, second.1));
            if first.len() < 3 {
                return Err(format!("{} of b in the first 100 ms", first.len()));
            }
            check_rate(&within(&origin, "key=", both), both, 200.0)?;
            let of_b = within(&origin, "key=b", both).len();
            if of_b.abs_diff(150) > 8 {
                return Err(format!("{of_b} of 300 are of b"));
            }
            // Within two spans it has all again; its last requests may wait that long.
            pass(millis(250));
            let again = pass(millis(1000));
            check_rate(&within(&origin, "key=a", again), again, 200.0)
        })
    });
}
