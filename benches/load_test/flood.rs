//! The fragile backend under one flooding client and nine light ones, behind several proxies.
//!
//! It is measured behind no proxy, nginx, haproxy, and drip's gate.

use std::io;
use std::time::Duration;

use crate::Played;
use crate::backend::{Backend, BackendSettings};
use crate::calls::Call;
use crate::gateway::Gateway;
use crate::pictures::{changes, most_at_once, per_step};
use crate::proxies::Proxy;
use crate::scene::{CallOutcome, End, Scene};
use crate::support::figures::float;
use crate::support::page;
use crate::support::plot::{Chart, Panel};

/// Capacity of 200 requests per second, if they arrive evenly.
const BACKEND: BackendSettings = BackendSettings {
    workers: 4,
    work: Duration::from_millis(20),
};
const PATIENCE: Duration = Duration::from_secs(1);

const FLOOD: &str = "/?client=flood";
/// Requests per second of the flooding client.
const FLOOD_RATE: u32 = 500;
const LIGHT: [&str; 9] = [
    "/?client=light1",
    "/?client=light2",
    "/?client=light3",
    "/?client=light4",
    "/?client=light5",
    "/?client=light6",
    "/?client=light7",
    "/?client=light8",
    "/?client=light9",
];
/// Requests per second of each light client.
const LIGHT_RATE: u32 = 5;

const NGINX_ZONES: &str = "limit_req_zone $arg_client zone=client:1m rate=20r/s;
    limit_req_zone $server_name zone=all:1m rate=180r/s;";
const NGINX_LIMITS: &str = "limit_req zone=client burst=20; limit_req zone=all burst=90;";

const HAPROXY_BACKEND: &str = "timeout queue 500ms";
const HAPROXY_SERVER: &str = "maxconn 4";

const GATE: &str = r#"
rate = "180r/s"
share = "client"
queue = 60

[zones.client]
key = "$arg_client"
rate = "1r/s"

[[routes]]
path = "/"
origin = "app"
"#;

/// Begin and end of the flood, and end of the scene, in seconds.
#[derive(Clone, Copy)]
struct Times {
    flood_start: f64,
    flood_end: f64,
    end: f64,
}

/// One step of the picture, in seconds.
const STEP: f64 = 0.5;

/// Plays the scene. `length`: fraction of its full length. `about`: the machine and version.
pub fn play(length: f64, about: &str) -> io::Result<Played> {
    let end = 12.0 * length;
    let times = Times {
        flood_start: end / 6.0,
        flood_end: end * 2.0 / 3.0,
        end,
    };
    let calls = calls(times);
    let mut played = Vec::new();
    for (name, run) in SYSTEMS {
        println!("one flooding client: {name} …");
        match run(&calls)? {
            Some(outcome) => played.push((name, outcome)),
            None => println!("{name}: not installed, so it is left out"),
        }
    }
    let rows: Vec<_> = played
        .iter()
        .map(|(name, outcome)| row(name, outcome, times))
        .collect();
    let head = [
        "during the flood",
        "light clients: sent",
        "answered within 1 s",
        "median, ms",
        "99th percentile, ms",
        "flooding client: answered a second",
        "backend: most requests at once",
        "its latency, 99th percentile, ms",
    ];
    Ok(Played {
        part: "flood",
        table: page::table(&head, &rows),
        pictures: vec![("load-7-flood.svg", picture(&played, times, about))],
    })
}

/// Plays the calls; `None` if the proxy is not installed.
type Run = fn(&[Call]) -> io::Result<Option<Vec<CallOutcome>>>;

const SYSTEMS: [(&str, Run); 4] = [
    ("nothing before it", |calls| {
        let backend = Backend::start(BACKEND)?;
        let address = backend.address;
        Ok(Some(scene(calls, &backend, address)))
    }),
    ("nginx, limit_req", |calls| {
        let backend = Backend::start(BACKEND)?;
        let proxy = Proxy::nginx(backend.address, NGINX_ZONES, NGINX_LIMITS)?;
        Ok(proxy.map(|proxy| scene(calls, &backend, proxy.address)))
    }),
    ("haproxy, maxconn", |calls| {
        let backend = Backend::start(BACKEND)?;
        let proxy = Proxy::haproxy(backend.address, HAPROXY_BACKEND, HAPROXY_SERVER)?;
        Ok(proxy.map(|proxy| scene(calls, &backend, proxy.address)))
    }),
    ("drip, rate and share", |calls| {
        let backend = Backend::start(BACKEND)?;
        let gateway = Gateway::start(backend.address, GATE)?;
        Ok(Some(scene(calls, &backend, gateway.address)))
    }),
];

fn scene(calls: &[Call], backend: &Backend, to: std::net::SocketAddr) -> Vec<CallOutcome> {
    let scene = Scene {
        calls,
        to,
        backend,
        patience: PATIENCE,
    };
    scene.play()
}

/// Returns the calls of all clients: each calls evenly, and no two light clients at once.
fn calls(times: Times) -> Vec<Call> {
    let second = Duration::from_secs(1);
    let light = evenly(0.0, times.end, second / LIGHT_RATE / 9);
    let light = light.zip(LIGHT.into_iter().cycle());
    let flood = evenly(times.flood_start, times.flood_end, second / FLOOD_RATE);
    let calls = light.chain(flood.map(|at| (at, FLOOD)));
    calls.map(|(at, path)| Call { at, path }).collect()
}

/// Returns instants from `from` to `to` seconds, `apart` from each other.
fn evenly(from: f64, to: f64, apart: Duration) -> impl Iterator<Item = Duration> {
    let (from, to) = (Duration::from_secs_f64(from), Duration::from_secs_f64(to));
    let moments = (0..).map(move |nth| from + apart * nth);
    moments.take_while(move |at| *at < to)
}

/// Returns the calls of the light clients.
fn light_clients(outcome: &[CallOutcome]) -> impl Iterator<Item = &CallOutcome> {
    outcome.iter().filter(|outcome| outcome.path != FLOOD)
}

fn is_answered(outcome: &CallOutcome) -> bool {
    outcome.end == End::Answered
}

fn picture(played: &[(&str, Vec<CallOutcome>)], times: Times, about: &str) -> Chart {
    let panel = |label: &str| {
        Panel::new(label)
            .mark_x("the flood", times.flood_start)
            .mark_x("it is over", times.flood_end)
            .x_to(times.end)
            .height(210)
    };
    let sent = float(u64::from(LIGHT_RATE)) * 9.0;
    let mut answered = panel("light clients: answered in time, a second").mark_y("sent", sent);
    let mut latency = panel("light clients: slowest answer of each half second, ms")
        .log_y()
        .mark_y("clients give up", PATIENCE.as_secs_f64() * 1e3);
    let mut at_backend = panel("requests at the backend at once").log_y();
    for (name, outcome) in played {
        let in_time: Vec<_> = light_clients(outcome)
            .filter(|outcome| is_answered(outcome))
            .collect();
        let sent: Vec<f64> = in_time.iter().map(|outcome| outcome.sent).collect();
        answered = answered.step(*name, &per_step(&sent, STEP, times.end));
        latency = latency.line(*name, &slowest(&in_time));
        at_backend = at_backend.step(
            *name,
            &most_at_once(&at_the_backend(outcome), STEP, times.end),
        );
    }
    Chart::new("One client floods a backend that can do 200 a second, nine others ask as always")
        .subtitle(about)
        .x_label("seconds, by when the request was sent")
        .same_x()
        .panel(answered)
        .panel(latency)
        .panel(at_backend)
}

/// Returns the slowest response of each step, in milliseconds.
fn slowest(answered: &[&CallOutcome]) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for outcome in answered {
        let (step, ms) = ((outcome.sent / STEP).floor() * STEP, took(outcome));
        match points.last_mut() {
            Some((at, most)) if *at >= step => *most = most.max(ms),
            _ => points.push((step, ms)),
        }
    }
    points
}

/// Returns arrival and end of each request at the backend. An unfinished request has no end.
fn at_the_backend(outcome: &[CallOutcome]) -> Vec<(f64, f64)> {
    changes(outcome.iter().filter_map(|outcome| {
        let done = outcome.backend.map_or(f64::INFINITY, |took| took);
        Some((outcome.reached?, outcome.reached? + done))
    }))
}

/// Returns the duration of a call in milliseconds.
fn took(outcome: &CallOutcome) -> f64 {
    (outcome.ended - outcome.sent) * 1e3
}

fn row(name: &str, outcome: &[CallOutcome], times: Times) -> Vec<String> {
    let during =
        |outcome: &&CallOutcome| (times.flood_start..times.flood_end).contains(&outcome.sent);
    let light: Vec<_> = light_clients(outcome).filter(during).collect();
    let answered: Vec<_> = light
        .iter()
        .copied()
        .filter(|outcome| is_answered(outcome))
        .collect();
    let flood = outcome.iter().filter(|outcome| outcome.path == FLOOD);
    let flood = flood.filter(|outcome| is_answered(outcome)).count();
    let share = 100.0 * float(answered.len() as u64) / float(light.len() as u64);
    let latencies: Vec<f64> = answered.iter().map(|outcome| took(outcome)).collect();
    let depths = most_at_once(&at_the_backend(outcome), STEP, times.end);
    let most = depths.iter().map(|(_, most)| *most).fold(0.0, f64::max);
    let backend_latencies = outcome.iter().filter_map(|outcome| outcome.backend);
    let backend_latencies: Vec<f64> = backend_latencies.map(|took| took * 1e3).collect();
    vec![
        name.to_owned(),
        light.len().to_string(),
        format!("{} ({share:.0} %)", answered.len()),
        percentile(&latencies, 50),
        percentile(&latencies, 99),
        format!(
            "{:.0}",
            float(flood as u64) / (times.flood_end - times.flood_start)
        ),
        format!("{most:.0}"),
        percentile(&backend_latencies, 99),
    ]
}

fn percentile(values: &[f64], percent: usize) -> String {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let nth = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    let value = sorted.get(nth);
    value.map_or("—".to_owned(), |ms| format!("{ms:.0}"))
}
