//! Tests that gateways with a shared gate give the origin one even stream.

use std::time::Duration;

use super::{check_rate, check_windows, file, gauge, pass, rate_of, shared, usual_rate, within};
use crate::programs::redis::Redis;
use crate::redis::shared::{busy, millis};
use crate::support::night::day_or_night;
use crate::support::{Gateway, Origin, best_of_three, eventually, gaps, quarter_alone};

/// Three gateways with different loads give the origin one stream at the rate.
///
/// A key that uses two of them has the share of one key.
#[test]
fn three_gateways_give_the_origin_one_even_stream_and_each_key_its_part() {
    let (text_rate, rate) = usual_rate();
    let _machine = quarter_alone();
    let redis = Redis::start();
    best_of_three(|attempt| {
        let origin = Origin::start();
        // Each attempt has its own grid.
        let own = format!("timeout = \"200ms\"\nprefix = \"{attempt}:\"");
        let text = file(&origin, &redis.url(), &shared(text_rate));
        let text = text.replace("timeout = \"200ms\"", &own);
        let [one, two, three] = [(); 3].map(|()| Gateway::start(&text));
        eventually("all are known", || {
            [&one, &two, &three]
                .iter()
                .all(|it| gauge(it, "drip_origin_gateways") == Some(3.0))
        });
        let crowds = [
            (&one, 20, "/?key=a"),
            (&one, 8, "/?key=both"),
            (&two, 8, "/?key=both"),
            (&two, 10, "/?key=c"),
            (&three, 1, "/?key=d"),
        ];
        let span = busy(&crowds, &[200], || {
            pass(millis(700));
            pass(millis(day_or_night(1500, 5000)))
        });
        let moments = within(&origin, "key=", span);
        check_rate(&moments, span, rate)?;
        // By day the bound is loose, because the machine is busy.
        check_windows(&moments, rate, millis(day_or_night(50, 15)))?;
        let gaps = gaps(&moments);
        let even = |gap: &&Duration| gap.abs_diff(Duration::from_secs(1).div_f64(rate)) < millis(2);
        let even = gaps.iter().filter(even).count();
        if day_or_night(false, even * 100 < gaps.len() * 85) {
            return Err(format!("{even} of {} gaps are even", gaps.len()));
        }
        #[expect(clippy::cast_precision_loss, reason = "they are few")]
        let counts =
            ["a", "both", "c"].map(|key| within(&origin, &format!("key={key}"), span).len() as f64);
        let mean = counts.iter().sum::<f64>() / 3.0;
        // Counting departures in a span may be off by one.
        if counts
            .iter()
            .any(|it| (it - mean).abs() > 0.05 * mean + 1.0)
        {
            return Err(format!("{counts:?} of three keys"));
        }
        for gateway in [&one, &two, &three] {
            assert_eq!(gauge(gateway, "drip_origin_shared"), Some(1.0));
            let labels = [("origin", "app"), ("result", "used")];
            let used = gateway.count("drip_origin_slots_total", &labels);
            assert!(used > day_or_night(8, 50), "{used}");
        }
        Ok(())
    });
}

/// Without Redis each gateway has its share, and no surge follows when Redis returns empty.
#[test]
fn without_redis_each_goes_on_with_its_part_and_then_they_share_again() {
    let (text_rate, rate) = usual_rate();
    let _machine = quarter_alone();
    best_of_three(|_| {
        let (origin, mut redis) = (Origin::start(), Redis::start());
        let text = file(&origin, &redis.url(), &shared(text_rate));
        let gateways = [Gateway::start(&text), Gateway::start(&text)];
        let all_have = |name, value| gateways.iter().all(|it| gauge(it, name) == Some(value));
        eventually("both are known", || all_have("drip_origin_gateways", 2.0));
        let [one, other] = &gateways;
        let crowds = [
            (one, 20, "/?key=a"),
            (one, 10, "/?key=b"),
            (other, 20, "/?key=c"),
        ];
        let (all, alone, after) = busy(&crowds, &[200], || {
            let began = pass(millis(day_or_night(300, 1000))).0;
            redis.kill();
            pass(millis(500));
            eventually("each gateway is alone", || {
                all_have("drip_origin_shared", 0.0)
            });
            let alone = pass(millis(day_or_night(1000, 2000)));
            assert!(all_have("drip_origin_shared", 0.0) && all_have("drip_origin_part", 0.5));
            redis.restart();
            eventually("they share again", || all_have("drip_origin_shared", 1.0));
            pass(millis(300));
            let after = pass(millis(day_or_night(1000, 1500)));
            ((began, after.1), alone, after)
        });
        check_rate(&within(&origin, "key=", alone), alone, rate)?;
        let of_c = rate_of(&within(&origin, "key=c", alone), alone);
        if (of_c - rate / 2.0).abs() > 2.0 {
            return Err(format!("the other one had {of_c:.1}r/s alone"));
        }
        let moments = within(&origin, "key=", after);
        check_rate(&moments, after, rate)?;
        // Alone, both gateways may send at the same moment. Old slots may overlap with new ones.
        check_windows(&within(&origin, "key=", all), rate, millis(80))
    });
}
