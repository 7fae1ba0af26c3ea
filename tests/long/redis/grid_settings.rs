//! A gateway that backs off beside one that does not.

use crate::programs::redis::Redis;
use crate::redis::shared::grid::{Crowd, busy, file, millis, pass, rate_of, shared, within};
use crate::support::{Gateway, Origin, best_of_three, eventually, half_alone};

/// One gateway's requests are in trouble: it backs off, and the other one gets what it leaves.
#[test]
fn who_backs_off_leaves_its_turns_to_the_others() {
    let _machine = half_alone();
    best_of_three(|_| {
        let origin = Origin::answering(|exchange| {
            if exchange.target().contains("bad") {
                return exchange.send(b"HTTP/1.1 503 Unavailable\r\ncontent-length: 0\r\n\r\n");
            }
            exchange.reply(b"good")
        });
        let redis = Redis::start();
        let text = file(&origin, &redis.url(), &shared("200r/s"));
        let backoff = "\n[origins.app.backoff]\nfloor = \"10%\"\n";
        let (bad, good) = (
            Gateway::start(&(text.clone() + backoff)),
            Gateway::start(&text),
        );
        let crowds = [
            Crowd::of(&bad, "/bad?key=a", 20).answered(503),
            Crowd::of(&good, "/good?key=b", 20),
        ];
        let span = busy(&crowds, || {
            eventually("its rate is lowered far", || {
                let labels = [("origin", "app"), ("of", "now")];
                let now = bad.metrics().value("drip_origin_rate", &labels);
                now.is_some_and(|now| now <= 50.0)
            });
            pass(millis(100));
            pass(millis(1000))
        });
        let of = |key| rate_of(&within(&origin, key, span), span);
        let (bad, good) = (of("key=a"), of("key=b"));
        // At most a quarter of its half, and less from cut to cut.
        if !(8.0..=27.0).contains(&bad) {
            return Err(format!("{bad:.1}r/s while backing off"));
        }
        if (bad + good - 200.0).abs() > 4.0 {
            return Err(format!("{bad:.1}r/s and {good:.1}r/s"));
        }
        Ok(())
    });
}
