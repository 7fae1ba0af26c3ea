//! Long tests of bills of two busy gateways.

use std::thread;
use std::time::Duration;

use crate::programs::redis::Redis;
use crate::redis::shared::bills::{billing, two};
use crate::redis::shared::{count_within, under_load};
use crate::support::{best_of_three, now, quarter_alone};

/// Two busy gateways with bills never exceed the rate in any window.
///
/// In the long run they also never exceed what the costs allow.
#[test]
fn two_busy_gateways_never_let_out_more_than_the_rate() {
    const RATE: u32 = 100;
    const WINDOW: Duration = Duration::from_millis(300);
    let _machine = quarter_alone();
    let redis = Redis::start();
    // Charge before and after the bill, and minimum and maximum of departures per second.
    for (estimate, says, least, most) in [(1, 2, 46, 52), (3, 1, 33, 102), (2, 3, 25, 36)] {
        best_of_three(|attempt| {
            let origin = billing();
            let rate = format!("{RATE}r/s");
            let [one, other] = two(&origin, &redis, &rate, "", ", burst = 40", estimate);
            let target = format!("/?key={estimate}.{attempt}&says={says}");
            let mut span = None;
            under_load(&[&one, &other], 12, &target, Duration::ZERO, || {
                thread::sleep(Duration::from_secs(1));
                let began = now();
                thread::sleep(Duration::from_secs(3));
                span = Some((began, now()));
            });
            let (from, until) = span.expect("it ran");
            let moments = origin.moments("key=");
            let count = count_within(&moments, from, until);
            let seconds = (until - from).as_secs_f64();
            #[allow(clippy::cast_precision_loss)]
            let rate = count as f64 / seconds;
            if !(f64::from(least)..=f64::from(most)).contains(&rate) {
                return Err(format!("{estimate} for {says}: {rate:.1} a second"));
            }
            let fullest = moments
                .iter()
                .map(|it| count_within(&moments, *it, *it + WINDOW));
            let fullest = fullest.max().unwrap_or_default();
            // One more, plus late arrivals on a busy machine.
            if fullest > 30 + 1 + 4 {
                return Err(format!("{estimate} for {says}: {fullest} in {WINDOW:?}"));
            }
            Ok(())
        });
    }
}
