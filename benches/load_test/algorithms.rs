//! Plays the same bursts to each algorithm, at the same rate.

use std::fmt::Write;
use std::io;
use std::thread;
use std::time::Duration;

use gateway::time::clock;

use crate::Played;
use crate::backend::{Backend, BackendSettings};
use crate::calls::{Call, burst, bursts};
use crate::gateway::Gateway;
use crate::pictures::{in_tenths, most_within};
use crate::scene::{CallOutcome, End, Scene};
use crate::support::page;
use crate::support::plot::{Chart, Panel};

/// A route's path, its title, the algorithm of its zone, and further fields of its limit.
type Case = (&'static str, &'static str, &'static str, &'static str);

const CASES: [Case; 7] = [
    (
        "/queue",
        "leaky_bucket, burst = 20",
        "leaky_bucket",
        ", burst = 20",
    ),
    (
        "/delay",
        "leaky_bucket, burst = 20, delay = 8",
        "leaky_bucket",
        ", burst = 20, delay = 8",
    ),
    (
        "/nodelay",
        "leaky_bucket, burst = 20, nodelay",
        "leaky_bucket",
        ", burst = 20, nodelay = true",
    ),
    (
        "/tokens",
        "token_bucket, burst = 20",
        "token_bucket",
        ", burst = 20",
    ),
    ("/fixed", "fixed_window", "fixed_window", ""),
    ("/log", "sliding_window_log", "sliding_window_log", ""),
    (
        "/counter",
        "sliding_window_counter",
        "sliding_window_counter",
        "",
    ),
];

const BACKEND: BackendSettings = BackendSettings {
    workers: 64,
    work: Duration::from_millis(2),
};

/// Plays the scene. `length`: fraction of its full length. `about`: the machine and version.
pub fn play(length: f64, about: &str) -> io::Result<Played> {
    let end = 8.0 * length;
    let mut calls: Vec<Call> = CASES
        .iter()
        .flat_map(|case| calls_of_route(case.0, end))
        .collect();
    calls.sort_by_key(|call| call.at);
    let backend = Backend::start(BACKEND)?;
    let gateway = Gateway::start(backend.address, &file())?;
    let scene = Scene {
        calls: &calls,
        to: gateway.address,
        backend: &backend,
        patience: Duration::from_secs(10),
    };
    println!("each algorithm, on the same bursts …");
    wait_for_whole_second();
    let outcome = scene.play();
    let last = outcome
        .iter()
        .map(|outcome| outcome.ended)
        .fold(end, f64::max);
    let (mut rows, mut chart) = (
        Vec::new(),
        Chart::new("The same bursts, at 20r/s: what each algorithm lets through")
            .subtitle(about)
            .x_label("seconds; windows begin at whole ones")
            .same_x(),
    );
    for (path, name, ..) in CASES {
        let all: Vec<CallOutcome> = outcome
            .iter()
            .copied()
            .filter(|outcome| outcome.path == path)
            .collect();
        let sent: Vec<f64> = all.iter().map(|outcome| outcome.sent).collect();
        let reached: Vec<f64> = all.iter().filter_map(|outcome| outcome.reached).collect();
        let panel = Panel::new(format!("{name}: requests in a tenth of a second"))
            .step("arriving", &in_tenths(&sent, last))
            .step("departing", &in_tenths(&reached, last))
            .height(110)
            .x_to(last);
        chart = chart.panel(panel);
        rows.push(row(name, &all, &reached));
    }
    let head = [
        "20r/s",
        "sent",
        "answered",
        "rejected",
        "longest wait, ms",
        "most at the backend within 100 ms",
        "within 1 s",
    ];
    Ok(Played {
        part: "algorithms",
        table: page::table(&head, &rows),
        pictures: vec![("load-6-algorithms.svg", chart)],
    })
}

/// Returns the calls of a route: two bursts beside the edge of a window, one that is far too large,
/// and calls above the rate for a while.
fn calls_of_route(path: &'static str, end: f64) -> Vec<Call> {
    burst(path, 0.9, 20)
        .chain(burst(path, 1.1, 20))
        .chain(burst(path, 0.4 * end, 40))
        .chain(bursts(path, 0.6 * end, end, 30.0))
        .collect()
}

/// Returns the zones and routes of all cases.
fn file() -> String {
    let mut text = String::new();
    for (path, _, algorithm, limit) in CASES {
        let name = &path[1..];
        // Writing to a string does not fail.
        let _taken = write!(
            text,
            r#"
[zones.{name}]
key = "$host"
rate = "20r/s"
algorithm = "{algorithm}"

[[routes]]
path = "{path}"
origin = "app"
limits = [{{ zone = "{name}"{limit} }}]
"#
        );
    }
    text
}

/// Waits for a whole second. Fixed windows begin there, so the scene is the same each time.
fn wait_for_whole_second() {
    const SECOND: u64 = 1_000_000_000;
    let since_whole = clock::now().as_nanos() % SECOND;
    thread::sleep(Duration::from_nanos(SECOND - since_whole));
}

fn row(name: &str, all: &[CallOutcome], reached: &[f64]) -> Vec<String> {
    let count = |end| all.iter().filter(|outcome| outcome.end == end).count();
    let waits = all
        .iter()
        .filter_map(|outcome| Some(outcome.reached? - outcome.sent));
    vec![
        name.to_owned(),
        all.len().to_string(),
        count(End::Answered).to_string(),
        count(End::Refused).to_string(),
        format!("{:.0}", waits.fold(0.0, f64::max) * 1e3),
        most_within(reached, 0.1).to_string(),
        most_within(reached, 1.0).to_string(),
    ]
}
