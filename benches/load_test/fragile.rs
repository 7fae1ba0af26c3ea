//! A backend for 200 requests per second, and a crowd for three seconds: without drip, and with it.

use std::io;
use std::time::Duration;

use crate::Played;
use crate::backend::{Backend, BackendSettings};
use crate::calls::{Call, bursts};
use crate::gateway::Gateway;
use crate::scene::{CallOutcome, End, Scene};
use crate::story::{Story, latency};
use crate::support::figures::float;
use crate::support::page;

/// Capacity of 200 requests per second, if they arrive evenly.
const BACKEND: BackendSettings = BackendSettings {
    workers: 4,
    work: Duration::from_millis(20),
};
const PATIENCE: Duration = Duration::from_secs(1);
const GATEWAY: &str = r#"
[zones.backend]
key = "$host"
rate = "150r/s"

[[routes]]
path = "/"
origin = "app"
limits = [{ zone = "backend", burst = 75 }]
"#;

/// Plays the scene. `length`: fraction of its full length. `about`: the machine and version.
pub fn play(length: f64, about: &str) -> io::Result<Played> {
    let end = 20.0 * length;
    let (crowd, crowd_end) = (0.2 * end, 0.35 * end);
    let calls = [
        bursts("/", 0.0, crowd, 100.0),
        bursts("/", crowd, crowd_end, 500.0),
        bursts("/", crowd_end, end, 100.0),
    ]
    .concat();
    println!("a backend and a crowd, without drip …");
    let alone = play_without_drip(&calls)?;
    println!("the same backend and crowd, with drip …");
    let protected = play_with_drip(&calls)?;
    let story = Story {
        about,
        crowd,
        crowd_end,
        end,
        patience: PATIENCE,
    };
    let pictures = vec![
        ("load-1-alone.svg", story.alone(&alone)),
        ("load-2-smooth.svg", story.smooth(&protected)),
        ("load-3-queue.svg", story.queue(&protected)),
        ("load-4-latency.svg", story.latency(&alone, &protected)),
    ];
    let head = [
        "",
        "sent",
        "answered within 1 s",
        "429 at once",
        "given up after 1 s",
        "failed",
        "backend's latency, median, ms",
        "most, ms",
    ];
    let rows = [row("without drip", &alone), row("with drip", &protected)];
    Ok(Played {
        part: "fragile",
        table: page::table(&head, &rows),
        pictures,
    })
}

fn play_without_drip(calls: &[Call]) -> io::Result<Vec<CallOutcome>> {
    let backend = Backend::start(BACKEND)?;
    let scene = Scene {
        calls,
        to: backend.address,
        backend: &backend,
        patience: PATIENCE,
    };
    Ok(scene.play())
}

fn play_with_drip(calls: &[Call]) -> io::Result<Vec<CallOutcome>> {
    let backend = Backend::start(BACKEND)?;
    let gateway = Gateway::start(backend.address, GATEWAY)?;
    let scene = Scene {
        calls,
        to: gateway.address,
        backend: &backend,
        patience: PATIENCE,
    };
    Ok(scene.play())
}

fn row(name: &str, all: &[CallOutcome]) -> Vec<String> {
    let count = |end| all.iter().filter(|outcome| outcome.end == end).count();
    let mut latencies: Vec<f64> = latency(all).into_iter().map(|(_, ms)| ms).collect();
    latencies.sort_by(f64::total_cmp);
    let median = latencies
        .get(latencies.len() / 2)
        .copied()
        .unwrap_or_default();
    let most = latencies.last().copied().unwrap_or_default();
    let share = 100.0 * float(count(End::Answered) as u64) / float(all.len() as u64);
    vec![
        name.to_owned(),
        all.len().to_string(),
        format!("{} ({share:.0} %)", count(End::Answered)),
        count(End::Refused).to_string(),
        count(End::GivenUp).to_string(),
        count(End::Failed).to_string(),
        format!("{median:.0}"),
        format!("{most:.0}"),
    ]
}
