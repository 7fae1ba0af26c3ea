//! Tests of origins whose rate gateways share: one even stream, shared fairly.
//!
//! This must hold whatever happens to Redis or to a gateway.

pub mod backing_off;
pub mod cluster;
mod failures;
pub mod fairness;
pub mod keys;
mod settings;
mod stream;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::redis::shared::steady_rate;
use crate::support::night::day_or_night;
use crate::support::{Client, Done, Gateway, Origin, gaps, now};

/// Returns a file whose origin has this gate, shared by the keys of `$arg_key`.
pub fn file(origin: &Origin, url: &str, gate: &str) -> String {
    format!(
        r#"
workers = 2

[origins.app]
servers = ["http://{}"]
share = "key"
queue_timeout = "60s"
{gate}

[redis]
url = "{url}"
timeout = "200ms"

[zones.key]
key = "$arg_key"
rate = "none"

[zones.key.plans.gold]
keys = ["gold"]
weight = 3

[[routes]]
path = "/"
origin = "app"
"#,
        origin.address
    )
}

pub fn shared(rate: &str) -> String {
    format!("rate = \"{rate}\"\nstore = \"redis\"")
}

/// Clients that each request a target at a gateway, again and again.
pub struct Crowd {
    at: SocketAddr,
    target: String,
    clients: usize,
    /// Expected status of every response.
    status: u16,
}

impl Crowd {
    pub fn of(at: &Gateway, target: &str, clients: usize) -> Self {
        Self {
            at: at.address(),
            target: target.to_owned(),
            clients,
            status: 200,
        }
    }

    pub fn answered(self, status: u16) -> Self {
        Self { status, ..self }
    }

    fn ask(&self, stop: &AtomicBool) {
        let mut client = Client::connect(self.at);
        while !stop.load(Ordering::SeqCst) {
            client.get(&self.target);
            // A gateway that is killed answers no request.
            match client.try_answer() {
                Ok(answer) => assert_eq!(answer.status, self.status, "{}", self.target),
                Err(_) => return,
            }
        }
    }
}

/// Keeps all clients busy while `meanwhile` runs.
pub fn busy<T>(crowds: &[Crowd], meanwhile: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::default();
    thread::scope(|scope| {
        for crowd in crowds {
            for _ in 0..crowd.clients {
                scope.spawn(|| crowd.ask(&stop));
            }
        }
        let _done = Done(&stop);
        meanwhile()
    })
}

/// Waits. Returns the begin and the end of the wait.
pub fn pass(span: Duration) -> (Instant, Instant) {
    let from = now();
    thread::sleep(span);
    (from, now())
}

/// Returns the arrivals in a span whose targets contain `part`.
pub fn within(origin: &Origin, part: &str, (from, until): (Instant, Instant)) -> Vec<Instant> {
    let moments = origin.moments(part).into_iter();
    moments.filter(|at| (from..until).contains(at)).collect()
}

pub fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[allow(clippy::cast_precision_loss)]
pub fn rate_of(moments: &[Instant], (from, until): (Instant, Instant)) -> f64 {
    moments.len() as f64 / (until - from).as_secs_f64()
}

/// Checks that no window has more arrivals than one plus the rate for the window and `slack`.
#[allow(clippy::cast_precision_loss)]
pub fn check_windows(moments: &[Instant], rate: f64, slack: Duration) -> Result<(), String> {
    // The excess of arrivals over the rate may never rise by more than that above its minimum.
    let Some(first) = moments.first() else {
        return Err("nothing arrived".to_owned());
    };
    let allowed = 1.0 + rate * slack.as_secs_f64();
    let mut least = f64::INFINITY;
    for (nth, at) in moments.iter().enumerate() {
        let above = nth as f64 - rate * (*at - *first).as_secs_f64();
        least = least.min(above);
        if above - least + 1.0 > allowed {
            let at = *at - *first;
            let more = above - least + 1.0;
            return Err(format!(
                "{more:.1} more than the rate at {at:?}, not {allowed:.1}"
            ));
        }
    }
    Ok(())
}

/// Checks that the stream in a span has the rate and fills the span.
pub fn check_rate(
    moments: &[Instant],
    (from, until): (Instant, Instant),
    rate: f64,
) -> Result<(), String> {
    let by_day = steady_rate(moments, rate);
    let found = day_or_night(by_day, rate_of(moments, (from, until)));
    if (found / rate - 1.0).abs() > 0.01 {
        return Err(format!("{found:.2}r/s, not {rate}r/s within 1 %"));
    }
    let begun = moments.first().map_or(until, |first| *first) - from;
    let ended = until - moments.last().map_or(from, |last| *last);
    if begun.max(ended).as_secs_f64() > 0.02 + 3.0 / rate {
        return Err(format!(
            "nothing came in the first {begun:?} or the last {ended:?}"
        ));
    }
    Ok(())
}

pub fn gauge(gateway: &Gateway, name: &str) -> Option<f64> {
    gateway.metrics().value(name, &[("origin", "app")])
}

/// Returns the coefficient of variation of the gaps.
#[allow(clippy::cast_precision_loss)]
pub fn unevenness(moments: &[Instant]) -> f64 {
    let gaps: Vec<f64> = gaps(moments).iter().map(Duration::as_secs_f64).collect();
    let count = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / count;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count;
    variance.sqrt() / mean
}

/// Returns the delay allowed for a request. By day it is large, because the machine is busy.
pub fn slack() -> Duration {
    millis(day_or_night(50, 15))
}

/// Returns the rate of most gates, as in a file and in requests per second.
pub fn usual_rate() -> (&'static str, f64) {
    day_or_night(("100r/s", 100.0), ("200r/s", 200.0))
}
