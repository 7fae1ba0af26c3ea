//! Tests of requests that gateways admitted without Redis, once Redis is back.

use std::thread;
use std::time::Duration;

use crate::programs::redis::Redis;
use crate::redis::shared::{count_within, file, under_load};
use crate::support::{Gateway, Origin, best_of_three, eventually, now, quarter_alone};

/// Requests admitted without Redis share the pace again once Redis is back.
///
/// Sixty requests wait at each of two gateways, for three seconds at each gateway's own pace.
#[test]
fn those_who_were_let_in_alone_share_the_pace_once_redis_is_back() {
    let _machine = quarter_alone();
    best_of_three(|_| {
        let (origin, mut redis) = (Origin::start(), Redis::start());
        let text = file(&origin, &redis.url(), "20r/s", "", ", burst = 200");
        let gateways = [Gateway::start(&text), Gateway::start(&text)];
        let all = [&gateways[0], &gateways[1]];
        let mut span = None;
        under_load(&all, 60, "/?key=a", Duration::ZERO, || {
            thread::sleep(Duration::from_secs(1));
            redis.kill();
            // Requests with slots of the shared schedule have left by then.
            thread::sleep(Duration::from_secs(7));
            redis.restart();
            eventually("both know it", || {
                all.iter()
                    .all(|it| it.metrics().count("drip_store_up", &[]) == 1)
            });
            thread::sleep(Duration::from_millis(500));
            let began = now();
            thread::sleep(Duration::from_secs(2));
            span = Some((began, now()));
        });
        let (from, until) = span.expect("it ran");
        let count = count_within(&origin.moments("key=a"), from, until);
        let is_so = (34..=46).contains(&count);
        is_so
            .then_some(())
            .ok_or_else(|| format!("{count} in 2 s, not 40"))
    });
}
