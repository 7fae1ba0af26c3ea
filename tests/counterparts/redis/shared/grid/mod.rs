//! Tests of origins whose rate gateways share: one even, fair stream, whatever Redis does.

mod backing_off;
mod settings;
mod stream;

use std::thread;
use std::time::{Duration, Instant};

use super::steady_rate;
use crate::support::night::day_or_night;
use crate::support::{Gateway, Origin, now};

/// Returns a file whose origin has this gate, shared by the keys of `$arg_key`.
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

/// Waits. Returns the begin and the end of the wait.
fn pass(span: Duration) -> (Instant, Instant) {
    let from = now();
    thread::sleep(span);
    (from, now())
}

/// Returns the arrivals in a span whose targets contain `part`.
fn within(origin: &Origin, part: &str, (from, until): (Instant, Instant)) -> Vec<Instant> {
    let moments = origin.moments(part).into_iter();
    moments.filter(|at| (from..until).contains(at)).collect()
}

#[allow(clippy::cast_precision_loss)]
fn rate_of(moments: &[Instant], (from, until): (Instant, Instant)) -> f64 {
    moments.len() as f64 / (until - from).as_secs_f64()
}

/// Checks that no window has more arrivals than one plus the rate for the window and `slack`.
#[allow(clippy::cast_precision_loss)]
fn check_windows(moments: &[Instant], rate: f64, slack: Duration) -> Result<(), String> {
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
fn check_rate(
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

fn gauge(gateway: &Gateway, name: &str) -> Option<f64> {
    gateway.value(name, &[("origin", "app")])
}

/// Returns the rate of most gates, as in a file and in requests per second.
fn usual_rate() -> (&'static str, f64) {
    day_or_night(("100r/s", 100.0), ("200r/s", 200.0))
}
