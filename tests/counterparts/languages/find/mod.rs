//! Tests of `drip find` before a real application: four Python processes and `SQLite`.
//!
//! The true capacity is measured without the gateway: requests straight to the application, evenly
//! at a rate.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::programs::running::Running;
use crate::support::{
    Client, Crowd, Gateway, drip, eventually, free_address, half_alone, now, one_origin,
};

const SECOND: Duration = Duration::from_secs(1);

/// Objective of the responses, and the same for the direct measurement.
const SLO: &str = "p95<300ms, errors<1%";
const BOUND: Duration = Duration::from_millis(300);
const ALLOWED: f64 = 0.05;

/// Number of unanswered requests at which an application is overloaded for sure.
const MAX_UNANSWERED: u64 = 300;

/// The application, while it runs.
struct App {
    // Dropping it ends the other processes.
    _process: Running,
    address: SocketAddr,
    _folder: TempDir,
}

impl App {
    /// Starts the application: ms of the other service and of a lock, and share of writes.
    ///
    /// See `app.py`.
    fn start(numbers: [f64; 3]) -> Self {
        let (address, folder) = (free_address(), TempDir::new().expect("a folder"));
        let mut command = Command::new("python3");
        command
            .arg("tests/counterparts/languages/find/app.py")
            .arg(address.to_string());
        command.arg(folder.path().join("goods.db"));
        for number in numbers {
            command.arg(number.to_string());
        }
        let process = Running::start(command.stdout(Stdio::null()));
        eventually("the application answers", || {
            Client::try_fetch(address, "/").is_ok_and(|it| it.status == 200)
        });
        Self {
            _process: process,
            address,
            _folder: folder,
        }
    }
}

/// Returns the share of bad responses to even requests at this rate, without the gateway.
///
/// Returns 1 early if too many requests are unanswered.
#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn bad_share(to: SocketAddr, rate: f64, time: Duration) -> f64 {
    const WARM_UP: Duration = Duration::from_secs(2);
    let counts = Arc::new([const { AtomicU64::new(0) }; 3]);
    let began = now();
    let mut asked = vec![];
    let mut is_overloaded = false;
    for nth in 0_u32.. {
        let at = Duration::from_secs_f64(f64::from(nth) / rate);
        if at >= time || is_overloaded {
            break;
        }
        thread::sleep((began + at).saturating_duration_since(now()));
        is_overloaded = counts[0].fetch_add(1, Ordering::Relaxed) >= MAX_UNANSWERED;
        let counts = Arc::clone(&counts);
        asked.push(thread::spawn(move || {
            let [unanswered, good, bad] = &*counts;
            let asked = now();
            let answer = Client::try_fetch(to, "/");
            let is_good = answer.is_ok_and(|it| it.status == 200) && asked.elapsed() < BOUND;
            if at >= WARM_UP {
                let count = if is_good { good } else { bad };
                count.fetch_add(1, Ordering::Relaxed);
            }
            unanswered.fetch_sub(1, Ordering::Relaxed);
        }));
        asked.retain(|it| !it.is_finished());
    }
    for it in asked {
        it.join().expect("no panic");
    }
    let [_, good, bad] = [0, 1, 2].map(|nth| counts[nth].load(Ordering::Relaxed) as f64);
    if is_overloaded {
        1.0
    } else {
        bad / (good + bad).max(1.0)
    }
}

/// The capacity of a real application is found.
///
/// A search takes about 45 s. Then a rate below and one above the result are measured.
#[test]
fn the_end_of_a_real_application_is_found() {
    let _half = half_alone();
    let app = App::start([25.0, 3.0, 0.3]);
    let arguments = ["--from", "90r/s", "--to", "250r/s", "--step", "20%"];
    let short = ["--min-step", "2s", "--confirm", "3s"];
    let file = "rate = \"20r/s\"\nqueue_timeout = \"60s\"\nmax_queue = 1000";
    let gateway = Gateway::start(&one_origin(app.address, "", file));
    let crowd = Crowd::start(&gateway, 120);
    let output = drip()
        .args(["find", "app", "--json", "--slo", SLO])
        .args(["--admin", &gateway.site.admin.to_string()])
        .args([&arguments[..], &short].concat())
        .output()
        .expect("the program");
    assert_eq!(crowd.end(), 0, "no request is rejected");
    let received: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for step in received["steps"].as_array().into_iter().flatten() {
        println!("{}", step["line"].as_str().unwrap_or_default());
    }
    let level = received["result"]["level"].as_str();
    let found = level.and_then(|it| it.strip_suffix("r/s")?.parse::<f64>().ok());
    let found = found.unwrap_or_else(|| panic!("no rate: {output:?}"));
    let (below, above) = (0.8 * found, 1.4 * found);
    let below = bad_share(app.address, below, 4 * SECOND);
    let above = bad_share(app.address, above, 7 * SECOND);
    println!("found {found}; bad below it {below:.3}, above {above:.3}");
    let is_boundary = below <= ALLOWED && above > ALLOWED;
    assert!(is_boundary, "{found}: {below} {above}");
}
