//! Tests that gateways with a shared gate give the origin one even stream.

use std::time::Duration;

use crate::programs::redis::Redis;
use crate::support::night::day_or_night;
use crate::support::{Gateway, Origin, best_of_three, fetch, gaps, now, quarter_alone};

use super::{
    Crowd, busy, check_rate, check_windows, file, gauge, millis, pass, shared, slack, unevenness,
    usual_rate, within,
};

/// Three gateways with different loads give the origin one stream at the rate.
#[test]
fn three_gateways_with_different_loads_give_the_origin_one_even_stream() {
    let (text_rate, rate) = usual_rate();
    let _machine = quarter_alone();
    let redis = Redis::start();
    best_of_three(|attempt| {
        let origin = Origin::start();
        // Each attempt has its own grid.
        let text = file(&origin, &redis.url(), &shared(text_rate)).replace(
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
            pass(millis(day_or_night(1500, 5000)))
        });
        let moments = within(&origin, "key=", span);
        check_rate(&moments, span, rate)?;
        check_windows(&moments, rate, slack())?;
        let uneven = unevenness(&moments);
        let gaps = gaps(&moments);
        let even = |gap: &&Duration| gap.abs_diff(Duration::from_secs(1).div_f64(rate)) < millis(2);
        let even = gaps.iter().filter(even).count();
        let is_even = even * 100 >= gaps.len() * 85;
        if day_or_night(false, !is_even) {
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
            assert!(used > day_or_night(8, 50), "{used}");
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
        // The last slot was long ago.
        pass(millis(700));
        let began = now();
        assert_eq!(fetch(one.address(), "/?key=a").status, 200);
        let took = began.elapsed();
        if took > millis(50) {
            return Err(format!("{took:?}"));
        }
        // Any gateway may take the next slot.
        assert_eq!(fetch(other.address(), "/?key=a").status, 200);
        let took = began.elapsed();
        if took.abs_diff(millis(500)) > millis(60) {
            return Err(format!("{took:?}, not 500 ms"));
        }
        Ok(())
    });
}
