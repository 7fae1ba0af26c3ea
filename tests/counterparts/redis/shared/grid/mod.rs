//! Origins whose rate gateways share: one even stream, shared fairly, whatever happens to Redis or a gateway.

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

/// A file whose origin has this gate, which the keys of `$arg_key` share.
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

/// So many clients that ask for a target at a gateway, again and again.
pub struct Crowd {
    at: SocketAddr,
    target: String,
    clients: usize,
    /// What every answer must be.
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
            // A gateway that is killed answers nobody.
            match client.try_answer() {
                Ok(answer) => assert_eq!(answer.status, self.status, "{}", self.target),
                Err(_) => return,
            }
        }
    }
}

/// Keeps all of them busy while `meanwhile` runs.
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

/// Lets so much time pass. Returns when that was.
pub fn pass(span: Duration) -> (Instant, Instant) {
    let from = now();
    thread::sleep(span);
    (from, now())
}

/// The moments in a span at which requests reached the origin whose targets have this part.
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

/// Returns an error if in any window more arrived than one and the rate for it and for `slack`.
#[allow(clippy::cast_precision_loss)]
pub fn check_windows(moments: &[Instant], rate: f64, slack: Duration) -> Result<(), String> {
    // Arrivals less what the rate allows: it may never rise by more than that above its least.
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

/// Returns an error unless the stream in a span has the rate, and the span is filled with it.
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

/// The coefficient of variation of the gaps.
#[allow(clippy::cast_precision_loss)]
pub fn unevenness(moments: &[Instant]) -> f64 {
    let gaps: Vec<f64> = gaps(moments).iter().map(Duration::as_secs_f64).collect();
    let count = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / count;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count;
    variance.sqrt() / mean
}

/// How late a request may be: by day, a busy machine is not measured.
pub fn slack() -> Duration {
    millis(day_or_night(50, 15))
}

/// The rate of most gates, as a file has it and in requests a second.
pub fn usual_rate() -> (&'static str, f64) {
    day_or_night(("100r/s", 100.0), ("200r/s", 200.0))
}
