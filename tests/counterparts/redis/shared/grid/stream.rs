//! What the origin sees of gateways that share its rate.

use std::time::Duration;

use super::{check_rate, check_windows, file, gauge, pass, rate_of, shared, usual_rate, within};
use crate::programs::redis::Redis;
use crate::redis::shared::{busy, millis};
use crate::support::night::day_or_night;
use crate::support::{Gateway, Origin, best_of_three, eventually, gaps, quarter_alone};

/// Three gateways with loads of different kinds: the origin sees one stream at the rate, and a key that comes by two of them
/// has the turns of one.
#[test]
fn three_gateways_give_the_origin_one_even_stream_and_each_key_its_part() {
    let (text_rate, rate) = usual_rate();
    let _machine = quarter_alone();
    let redis = Redis::start();
    best_of_three(|attempt| {
        let origin = Origin::start();
        // Each attempt has a grid of its own.
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
        // By day, a busy machine is not measured.
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
        // Whoever counts departures in a span may count one more or less.
        if counts
            .iter()
            .any(|it| (it - mean).abs() > 0.05 * mean + 1.0)
        {
            return Err(format!("{counts:?} of three keys"));
        }
        for gateway in [&one, &two, &three] {
            assert_eq!(gauge(gateway, "drip_origin_shared"), Some(1.0));
            let labels = [("origin", "app"), ("result", "used")];
            let used = gateway.metrics().count("drip_origin_slots_total", &labels);
            assert!(used > day_or_night(8, 50), "{used}");
        }
        Ok(())
    });
}

/// Redis dies and comes back empty: alone each has its part, and no surge follows.
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
            eventually("each goes on alone", || all_have("drip_origin_shared", 0.0));
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
        // Alone, both may send in the same moment; a span of old slots may meet the new ones.
        check_windows(&within(&origin, "key=", all), rate, millis(80))
    });
}
