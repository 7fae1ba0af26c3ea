//! `drip find` before a real application, of four Python processes and `SQLite`, whose end it does not know.
//!
//! The truth is measured without the gateway: requests straight to the application, evenly at fixed rates.

use std::env;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{
    Client, Crowd, Gateway, drip, eventually, free_address, half_alone, now, one_origin,
};

const SECOND: Duration = Duration::from_secs(1);

/// What answers must keep, and the same for the measuring of the truth.
const SLO: &str = "p95<300ms, errors<1%";
const BOUND: Duration = Duration::from_millis(300);
const ALLOWED: f64 = 0.05;

/// Requests without an answer at which an application is overloaded for sure.
const MAX_UNANSWERED: u64 = 300;

/// What makes the end of an application: see `app.py`.
#[derive(Clone, Copy, Debug)]
struct Hidden {
    wait: f64,
    lock: f64,
    writes: f64,
}

impl Hidden {
    /// One that nobody has seen before: four processes can take 35 to 150 requests a second.
    fn at_random() -> Self {
        let number = |from: f64, to: f64| {
            let mut bytes = [0; 4];
            getrandom(&mut bytes);
            from * (to / from).powf(f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX))
        };
        Self {
            wait: number(25.0, 80.0),
            lock: number(2.0, 12.0),
            writes: number(0.1, 0.6),
        }
    }
}

fn getrandom(bytes: &mut [u8; 4]) {
    use std::io::Read;
    let mut random = std::fs::File::open("/dev/urandom").expect("random numbers");
    random.read_exact(bytes).expect("random numbers");
}

/// The application, while it runs.
struct App {
    process: Child,
    address: SocketAddr,
    _folder: TempDir,
}

impl App {
    fn start(hidden: Hidden) -> Self {
        let (address, folder) = (free_address(), TempDir::new().expect("a folder"));
        let mut command = Command::new("python3");
        command
            .arg("tests/counterparts/languages/find/app.py")
            .arg(address.to_string());
        command.arg(folder.path().join("goods.db"));
        for number in [hidden.wait, hidden.lock, hidden.writes] {
            command.arg(number.to_string());
        }
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        let process = process.expect("python3, which tests/run.sh installs");
        eventually("the application answers", || {
            Client::try_fetch(address, "/").is_ok_and(|it| it.status == 200)
        });
        Self {
            process,
            address,
            _folder: folder,
        }
    }
}

impl Drop for App {
    fn drop(&mut self) {
        // The others end because this one has.
        let _ended = self.process.kill();
        let _ended = self.process.wait();
    }
}

/// The share of bad answers to requests that come evenly at this rate, straight to the application. 1 if so many
/// are without an answer that nobody need wait for more.
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

/// The highest rate that keeps the objective, to 1 %, by bisection.
fn measure(to: SocketAddr, time: Duration) -> f64 {
    let (mut low, mut high) = (20.0_f64, 200.0_f64);
    while high / low > 1.01 {
        let middle = (low * high).sqrt();
        if bad_share(to, middle, time) <= ALLOWED {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// What `drip find` said, and what happened to clients meanwhile.
struct Search {
    told: Value,
    refused: u64,
}

impl Search {
    fn run(app: &App, clients: usize, arguments: &[&str]) -> Self {
        let file = "rate = \"20r/s\"\nqueue_timeout = \"60s\"\nmax_queue = 1000";
        let gateway = Gateway::start(&one_origin(app.address, "", file));
        let crowd = Crowd::start(&gateway, clients);
        let output = drip()
            .args(["find", "app", "--json", "--slo", SLO])
            .args(["--admin", &gateway.site.admin.to_string()])
            .args(arguments)
            .output()
            .expect("the program");
        let refused = crowd.end();
        let told = String::from_utf8_lossy(&output.stdout);
        let told = serde_json::from_str(&told).unwrap_or_else(|_| panic!("no JSON: {output:?}"));
        Self { told, refused }
    }

    fn level(&self, field: &str) -> Option<f64> {
        rate(&self.told["result"][field])
    }

    /// The longest time on end for which the level was above this rate.
    fn above(&self, end: f64) -> f64 {
        let steps = self.told["steps"].as_array().expect("steps");
        let (mut longest, mut now) = (0.0, 0.0);
        for step in steps {
            let is_above = rate(&step["level"]).expect("a rate") > end;
            let took = step["took"].as_f64().expect("seconds");
            now = if is_above { now + took } else { 0.0 };
            longest = f64::max(longest, now);
        }
        longest
    }

    fn print(&self) {
        for step in self.told["steps"].as_array().into_iter().flatten() {
            println!("{}", step["line"].as_str().unwrap_or_default());
        }
    }
}

fn rate(text: &Value) -> Option<f64> {
    text.as_str()?.strip_suffix("r/s")?.parse().ok()
}

/// Some 45 s of search, and then a rate below what was found, and one above.
#[test]
fn the_end_of_a_real_application_is_found() {
    let _half = half_alone();
    let hidden = Hidden {
        wait: 25.0,
        lock: 3.0,
        writes: 0.3,
    };
    let app = App::start(hidden);
    let arguments = ["--from", "90r/s", "--to", "250r/s", "--step", "20%"];
    let short = ["--min-step", "2s", "--confirm", "3s"];
    let search = Search::run(&app, 120, &[&arguments[..], &short].concat());
    search.print();
    assert_eq!(search.refused, 0, "nobody is refused because of it");
    let found = search.level("level").expect("a rate");
    let (below, above) = (0.8 * found, 1.4 * found);
    let below = bad_share(app.address, below, 4 * SECOND);
    let above = bad_share(app.address, above, 7 * SECOND);
    println!("found {found}; bad below it {below:.3}, above {above:.3}");
    assert!(
        below <= ALLOWED && above > ALLOWED,
        "{found}: {below} {above}"
    );
}

/// `DRIP_FIND_RUNS=6 cargo test --test counterparts languages::find -- --ignored --nocapture`: so many applications with
/// ends that nobody knows, all at once, searched as a user does, and then measured. It takes half an hour.
#[test]
#[ignore = "half an hour"]
fn ends_that_nobody_knows_are_found() {
    let runs = env::var("DRIP_FIND_RUNS")
        .ok()
        .and_then(|it| it.parse().ok());
    let runs: Vec<_> = (0..runs.unwrap_or(6))
        .map(|nth| {
            thread::spawn(move || {
                let hidden = Hidden::at_random();
                let app = App::start(hidden);
                let search = Search::run(&app, 150, &["--from", "20r/s", "--to", "200r/s"]);
                let truth = measure(app.address, 60 * SECOND);
                (nth, hidden, search, truth)
            })
        })
        .collect();
    let mut within = vec![];
    for run in runs {
        let (nth, hidden, search, truth) = run.join().expect("no panic");
        println!("run {nth}, {hidden:?}:");
        search.print();
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("find-{nth}.json"));
        fs::write(&file, search.told.to_string()).expect("a file");
        let ends = ["low", "level", "high"].map(|it| search.level(it).unwrap_or_default());
        let [low, found, high] = ends;
        println!(
            "run {nth}: found {found}r/s ({low} to {high}), the end is {truth:.1}r/s: {:.3}; {:.0} s, {} requests, \
             {} refused, above it for {:.0} s at most, more than a step above for {:.0} s",
            found / truth,
            search.told["took"].as_f64().unwrap_or_default(),
            search.told["requests"],
            search.refused,
            search.above(truth),
            search.above(truth * 1.0501),
        );
        assert_eq!(search.refused, 0);
        within.push((found / truth - 1.0).abs() <= 0.1);
    }
    let good = within.iter().filter(|it| **it).count();
    assert!(good * 20 >= within.len() * 19, "{good} of {}", within.len());
}
