//! Tests of zones that gateways share, with real Redis servers that fail in every way.

pub mod bills;
mod cluster;
pub mod cluster_under_load;
mod failures;
mod foreign;
pub mod grid;
pub mod in_flight;
mod lease_accounts;
pub mod leases;
mod new_keys;
mod others;
pub mod places;
mod plans;
mod refused;
pub mod relay;
mod reloads;
mod retune;
mod room;
mod stream;
mod verdicts;
mod withheld;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::night::day_or_night;
use crate::support::{Client, Done, Gateway, Origin, now};

/// Returns a file whose zone `z` is kept in the Redis at `url`, keyed by the argument `key`.
///
/// `more`: further fields of the zone. `limit`: that of its route. Route `/open` has no limit.
/// Redis
/// has a long timeout, for a busy machine.
pub fn file(origin: &Origin, url: &str, rate: &str, more: &str, limit: &str) -> String {
    let timeout = "2s";
    format!(
        r#"
workers = 2

[origins.app]
servers = ["http://{}"]

[redis]
url = "{url}"
timeout = "{timeout}"

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

/// Results of requests: number of responses by status, and the longest duration.
#[derive(Debug, Default)]
pub struct Fates {
    pub statuses: BTreeMap<u16, usize>,
    pub longest: Duration,
}

impl Fates {
    pub fn all(&self) -> usize {
        self.statuses.values().sum()
    }

    pub fn of(&self, status: u16) -> usize {
        self.statuses.get(&status).copied().unwrap_or(0)
    }
}

/// Keeps `clients` busy at each of `gateways` while `meanwhile` runs.
///
/// Each client sends one request after another on its connection. Fails unless every request is
/// answered.
pub fn under_load(
    gateways: &[&Gateway],
    clients: usize,
    target: &str,
    pause: Duration,
    meanwhile: impl FnOnce(),
) -> Fates {
    let (fates, stop) = (Mutex::<Fates>::default(), AtomicBool::default());
    let ask = |address: SocketAddr| {
        let mut client = Client::connect(address);
        while !stop.load(Ordering::SeqCst) {
            let began = now();
            client.get(target);
            let status = client.answer().status;
            let took = began.elapsed();
            let mut fates = fates.lock().expect("no panic");
            *fates.statuses.entry(status).or_default() += 1;
            fates.longest = fates.longest.max(took);
            drop(fates);
            if status != 200 || !pause.is_zero() {
                thread::sleep(pause.max(Duration::from_millis(day_or_night(25, 5))));
            }
        }
    };
    thread::scope(|scope| {
        for gateway in gateways {
            for _ in 0..clients {
                let (address, ask) = (gateway.address(), &ask);
                scope.spawn(move || ask(address));
            }
        }
        let _done = Done(&stop);
        meanwhile();
    });
    fates.into_inner().expect("no panic")
}

/// Returns how many of the moments are within a span.
pub fn count_within(moments: &[Instant], from: Instant, until: Instant) -> usize {
    moments
        .iter()
        .filter(|at| (from..until).contains(*at))
        .count()
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

/// Runs cases on their own threads, so that they wait at the same time.
fn all_at_once<T: Send>(cases: impl IntoIterator<Item = T>, check: impl Fn(T) + Sync) {
    let check = &check;
    thread::scope(|scope| {
        for case in cases {
            scope.spawn(move || check(case));
        }
    });
}

/// Returns the requests per second of a stream that should have `wanted`.
///
/// A busy machine delays requests and never advances them. So the rate is measured between the
/// least
/// delayed request of the first quarter and that of the last quarter.
pub fn steady_rate(moments: &[Instant], wanted: f64) -> f64 {
    let quarter = moments.len() / 4;
    let least_late = |range: Range<usize>| {
        let late = |nth: usize| {
            let count = f64::from(u32::try_from(nth).expect("few"));
            (moments[nth] - moments[0]).as_secs_f64() - count / wanted
        };
        range.min_by(|one, other| late(*one).total_cmp(&late(*other)))
    };
    let ends = least_late(0..quarter).zip(least_late(moments.len() - quarter..moments.len()));
    ends.map_or(0.0, |(first, last)| {
        let count = u32::try_from(last - first).expect("few");
        f64::from(count) / (moments[last] - moments[first]).as_secs_f64()
    })
}
