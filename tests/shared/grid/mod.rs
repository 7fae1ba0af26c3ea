//! Origins whose rate gateways share: one even stream, shared fairly, whatever happens to Redis or a gateway.

mod backing_off;
mod cluster;
mod failures;
mod fairness;
mod keys;
mod network;
mod settings;
mod stream;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Client, Done, Gateway, Origin, gaps, now};

/// A file whose origin has this gate, which the keys of `$arg_key` share.
fn file(origin: &Origin, url: &str, gate: &str) -> String {
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

fn shared(rate: &str) -> String {
    format!("rate = \"{rate}\"\nstore = \"redis\"")
}

/// So many clients that ask for a target at a gateway, again and again.
struct Crowd {
    at: SocketAddr,
    target: String,
    clients: usize,
    /// What every answer must be.
    status: u16,
}

impl Crowd {
    fn of(at: &Gateway, target: &str, clients: usize) -> Self {
        Self {
            at: at.address(),
            target: target.to_owned(),
            clients,
            status: 200,
        }
    }

    fn answered(self, status: u16) -> Self {
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
fn busy<T>(crowds: &[Crowd], meanwhile: impl FnOnce() -> T) -> T {
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
fn pass(span: Duration) -> (Instant, Instant) {
    let from = now();
    thread::sleep(span);
    (from, now())
}

/// The moments in a span at which requests reached the origin whose targets have this part.
fn within(origin: &Origin, part: &str, (from, until): (Instant, Instant)) -> Vec<Instant> {
    let moments = origin.moments(part).into_iter();
    moments.filter(|at| (from..until).contains(at)).collect()
}

fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[allow(clippy::cast_precision_loss)]
fn rate_of(moments: &[Instant], (from, until): (Instant, Instant)) -> f64 {
    moments.len() as f64 / (until - from).as_secs_f64()
}

/// The coefficient of variation of the gaps.
#[allow(clippy::cast_precision_loss)]
fn unevenness(moments: &[Instant]) -> f64 {
    let gaps: Vec<f64> = gaps(moments).iter().map(Duration::as_secs_f64).collect();
    let count = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / count;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count;
    variance.sqrt() / mean
}

/// Returns an error if in any window more arrived than one and the rate for it and for `slack`.
#[allow(clippy::cast_precision_loss)]
fn check_windows(moments: &[Instant], rate: f64, slack: Duration) -> Result<(), String> {
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

fn check_rate(moments: &[Instant], span: (Instant, Instant), rate: f64) -> Result<(), String> {
    let found = rate_of(moments, span);
    if (found / rate - 1.0).abs() > 0.01 {
        return Err(format!("{found:.2}r/s, not {rate}r/s within 1 %"));
    }
    Ok(())
}

fn gauge(gateway: &Gateway, name: &str) -> Option<f64> {
    gateway.metrics().value(name, &[("origin", "app")])
}
