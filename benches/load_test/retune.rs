//! Changes the rate while requests wait: they are paced anew at once, and none is lost.

use std::io;
use std::thread;
use std::time::Duration;

use crate::Played;
use crate::backend::{Backend, BackendSettings};
use crate::calls::bursts;
use crate::gateway::Gateway;
use crate::pictures::{a_second, depth};
use crate::scene::{CallOutcome, End, Scene};
use crate::support::page;
use crate::support::plot::{Chart, Panel};

const BACKEND: BackendSettings = BackendSettings {
    workers: 64,
    work: Duration::from_millis(2),
};

fn zone(rate: u32) -> String {
    format!(
        r#"
[zones.backend]
key = "$host"
rate = "{rate}r/s"

[[routes]]
path = "/"
origin = "app"
limits = [{{ zone = "backend", burst = 1000 }}]
"#
    )
}

/// Plays the scene. `length`: fraction of its full length. `about`: the machine and version.
pub fn play(length: f64, about: &str) -> io::Result<Played> {
    let end = 12.0 * length;
    let (slower, faster) = (end / 3.0, end * 2.0 / 3.0);
    let calls = bursts("/", 0.0, end, 110.0);
    let backend = Backend::start(BACKEND)?;
    let gateway = Gateway::start(backend.address, &zone(100))?;
    let scene = Scene {
        calls: &calls,
        to: gateway.address,
        backend: &backend,
        patience: Duration::from_secs(30),
    };
    println!("a rate that changes while requests wait …");
    let (outcome, saved) = thread::scope(|scope| {
        let saving = scope.spawn(|| {
            thread::sleep(Duration::from_secs_f64(slower));
            gateway.save(&zone(50))?;
            thread::sleep(Duration::from_secs_f64(faster - slower));
            gateway.save(&zone(250))
        });
        (scene.play(), saving.join().expect("no panic"))
    });
    saved?;
    let last = outcome
        .iter()
        .map(|outcome| outcome.ended)
        .fold(end, f64::max);
    let marks = |panel: Panel| {
        panel
            .mark_x("saved: 50r/s", slower)
            .mark_x("saved: 250r/s", faster)
            .x_to(last)
    };
    let reached: Vec<f64> = outcome
        .iter()
        .filter_map(|outcome| outcome.reached)
        .collect();
    let sent: Vec<f64> = outcome.iter().map(|outcome| outcome.sent).collect();
    let chart = Chart::new("The file is saved while requests wait: 100r/s, 50r/s, 250r/s")
        .subtitle(about)
        .x_label("seconds")
        .same_x()
        .panel(
            marks(Panel::new("requests a second"))
                .step("arriving", &a_second(&sent, last))
                .step("departing", &a_second(&reached, last)),
        )
        .panel(marks(Panel::new("requests in drip's queue")).step("waiting", &depth(&outcome)));
    let head = [
        "",
        "sent",
        "answered",
        "rejected or lost",
        "departed a second at 100r/s",
        "at 50r/s",
        "at 250r/s",
    ];
    // Each rate is measured while all requests wait: until the next rate, or until the queue is
    // empty.
    let drained = reached.iter().copied().fold(0.0, f64::max).min(end);
    let row = vec![
        "two retunes".to_owned(),
        outcome.len().to_string(),
        count(&outcome, End::Answered).to_string(),
        (outcome.len() - count(&outcome, End::Answered)).to_string(),
        rate(&reached, slower * 0.5, slower),
        rate(&reached, slower + 0.2, faster),
        rate(&reached, faster + 0.2, (faster + 1.0 * length).min(drained)),
    ];
    Ok(Played {
        part: "retune",
        table: page::table(&head, &[row]),
        pictures: vec![("load-5-retune.svg", chart)],
    })
}

fn count(all: &[CallOutcome], end: End) -> usize {
    all.iter().filter(|outcome| outcome.end == end).count()
}

/// The mean rate between the first and the last departure from `from` to `to`.
fn rate(departures: &[f64], from: f64, to: f64) -> String {
    let inside = departures
        .iter()
        .copied()
        .filter(|at| (from..to).contains(at));
    let (mut first, mut last, mut gaps) = (f64::INFINITY, 0.0_f64, -1.0);
    for at in inside {
        (first, last, gaps) = (first.min(at), last.max(at), gaps + 1.0);
    }
    if gaps < 1.0 {
        return "—".to_owned();
    }
    format!("{:.1}", gaps / (last - first))
}
