//! Tests of zones that gateways share, with real Redis servers that fail in every way.

pub mod cluster;
mod failures;
mod foreign;
mod grid;
pub mod in_flight;
mod leases;
mod others;
pub mod permits;
mod refused;
pub mod relay;
mod reloads;
mod retune;
mod room;
mod tls;
mod verdicts;
mod withheld;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Client, Done, Gateway, MS, Origin};

/// Returns a file whose zone `z` is kept in the Redis at `url`, keyed by the argument `key`.
///
/// `more`: further fields of the zone. `limit`: that of its route. Route `/open` has no limit.
/// Redis
/// has a long timeout, for a busy machine.
pub fn file(origin: &Origin, url: &str, rate: &str, more: &str, limit: &str) -> String {
    format!(
        r#"
workers = 2

[origins.app]
servers = ["http://{}"]

[redis]
url = "{url}"
timeout = "2s"

[zones.z]
key = "$arg_key"
rate = "{rate}"
store = "redis"
{more}

[[routes]]
path = "/"
origin = "app"
limits = [{{ zone = "z"{limit} }}]

[[routes]]
path = "/open"
origin = "app"
"#,
        origin.address
    )
}

/// Keeps `clients` of each gateway busy with requests for this target while `meanwhile` runs.
///
/// Each response must have one of these statuses. Clients of a gateway that dies end.
pub fn busy<T>(
    crowds: &[(&Gateway, usize, &str)],
    allowed: &[u16],
    meanwhile: impl FnOnce() -> T,
) -> T {
    let stop = AtomicBool::default();
    let ask = |gateway: &Gateway, target: &str| {
        let Ok(mut client) = Client::try_connect(gateway.address()) else {
            return;
        };
        while !stop.load(Ordering::SeqCst) {
            let Ok(status) = client.try_get(target) else {
                return;
            };
            assert!(allowed.contains(&status), "{target}: {status}");
            if status != 200 {
                thread::sleep(3 * MS);
            }
        }
    };
    thread::scope(|scope| {
        for (gateway, clients, target) in crowds {
            for _ in 0..*clients {
                scope.spawn(|| ask(gateway, target));
            }
        }
        let _done = Done(&stop);
        meanwhile()
    })
}

pub fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Returns the maximum excess of arrivals over `rate`, counted from any arrival.
///
/// The excess is 1 for an even stream at the rate, and one more for each request of a burst.
pub fn most_above(moments: &[Instant], rate: f64) -> f64 {
    let (mut level, mut most, mut last) = (0.0, 0.0, None::<Instant>);
    for at in moments {
        let since = last.map_or(0.0, |last| (*at - last).as_secs_f64());
        level = f64::max(level - since * rate, 0.0) + 1.0;
        most = f64::max(most, level);
        last = Some(*at);
    }
    most
}

/// Returns the requests per second of a stream that should have `expected`.
///
/// A busy machine delays requests and never advances them. So the rate is measured between the
/// least delayed request of the first quarter and that of the last quarter.
pub fn steady_rate(moments: &[Instant], expected: f64) -> f64 {
    let quarter = moments.len() / 4;
    let least_late = |range: Range<usize>| {
        let late = |nth: usize| {
            let count = f64::from(u32::try_from(nth).expect("few"));
            (moments[nth] - moments[0]).as_secs_f64() - count / expected
        };
        range.min_by(|one, other| late(*one).total_cmp(&late(*other)))
    };
    let ends = least_late(0..quarter).zip(least_late(moments.len() - quarter..moments.len()));
    ends.map_or(0.0, |(first, last)| {
        let count = u32::try_from(last - first).expect("few");
        f64::from(count) / (moments[last] - moments[first]).as_secs_f64()
    })
}
