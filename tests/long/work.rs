//! Tests that an origin is evenly busy and keys get equal work if costs are learned.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::workers::{LEARNED, Workers, ask, file, route};
use crate::support::{Client, Gateway, Origin, best_of_three, half_alone, now};

/// Results of a run.
struct Run {
    mean: f64,
    variance: f64,
    p99: Duration,
    jain: f64,
}

/// A gateway and its origin. The origin sets the cost of pages and reports.
struct Scene {
    workers: Arc<Workers>,
    gateway: Gateway,
    _origin: Origin,
    keys: Vec<String>,
    /// Durations of pages.
    took: Mutex<Vec<Duration>>,
    /// Begin and end of the measurement.
    span: (Instant, Instant),
}

impl Scene {
    fn start(rate: &str, cost: &str, report: &str, keys: usize, seconds: u64) -> Self {
        let workers = Workers::new();
        let origin = workers.origin();
        let routes = route("/page", cost) + &route("/report", cost);
        let gateway = Gateway::start(&file(&origin, rate, &routes));
        for path in ["/page", report] {
            thread::scope(|scope| {
                for nth in 0..2 {
                    let gateway = &gateway;
                    scope.spawn(move || {
                        for _ in 0..2 {
                            assert_eq!(ask(gateway, &format!("{path}?key=w{nth}"), ""), 200);
                        }
                    });
                }
            });
        }
        let began = now() + Duration::from_secs(6);
        Self {
            workers,
            gateway,
            _origin: origin,
            keys: (0..keys).map(|nth| format!("k{nth}")).collect(),
            took: Mutex::default(),
            span: (began, began + Duration::from_secs(seconds)),
        }
    }

    fn is_over(&self) -> bool {
        now() >= self.span.1
    }

    /// Sends one request on this connection.
    fn ask(&self, client: &mut Client, path: &str, key: &str) {
        let asked = now();
        assert_eq!(client.fetch(&format!("{path}?key={key}")).status, 200);
        if path == "/page" && asked >= self.span.0 {
            self.took.lock().expect("no panic").push(asked.elapsed());
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    fn measure(self, name: &str) -> Run {
        let mut took = self.took.into_inner().expect("no panic");
        took.sort_unstable();
        let (from, to) = self.span;
        let seconds = self.workers.by_second(from, (to - from).as_secs());
        let mean = seconds.iter().sum::<f64>() / seconds.len() as f64;
        let squares: f64 = seconds.iter().map(|it| (it - mean).powi(2)).sum();
        let variance = squares / seconds.len() as f64;
        let work = self.workers.by_key(&self.keys, from, to);
        let squares: f64 = work.iter().map(|it| it * it).sum();
        let p99 = took[took.len() * 99 / 100];
        let jain = work.iter().sum::<f64>().powi(2) / (work.len() as f64 * squares);
        println!(
            "{name}: busy {mean:.2} of 4, variance {variance:.4}, p99 of {} pages {p99:?}, Jain {jain:.4}",
            took.len()
        );
        Run {
            mean,
            variance,
            p99,
            jain,
        }
    }
}

/// Runs with cost 1 and with learned costs at the same time: the runs mostly wait.
fn both(one: (&str, fn(&str, &str) -> Run), learned: &str) -> (Run, Run) {
    let (rate, run) = one;
    thread::scope(|scope| {
        let one = scope.spawn(move || run(rate, ""));
        let work = scope.spawn(move || run(learned, LEARNED));
        (
            one.join().expect("no panic"),
            work.join().expect("no panic"),
        )
    })
}

/// Repeats both runs. They last for seconds, so chance affects them like other measurements.
fn best_of_three_runs(run: impl Fn() -> Vec<(&'static str, bool)>) {
    best_of_three(|_| {
        let missed = run();
        let missed: Vec<_> = missed.iter().filter(|it| !it.1).map(|it| it.0).collect();
        if missed.is_empty() {
            return Ok(());
        }
        Err(format!("missed {missed:?}"))
    });
}

/// Twelve keys request pages and then four request reports, each again after its response.
///
/// With cost 1 the order of the first round stays, and the reports are sent together.
fn keys_that_always_ask(rate: &str, cost: &str) -> Run {
    let scene = Scene::start(rate, cost, "/report/short", 16, 30);
    thread::scope(|scope| {
        for (nth, key) in scene.keys.iter().enumerate() {
            let scene = &scene;
            thread::sleep(Duration::from_millis(25));
            scope.spawn(move || {
                let path = if nth < 12 { "/page" } else { "/report/short" };
                let mut client = scene.gateway.connect();
                while !scene.is_over() {
                    scene.ask(&mut client, path, key);
                }
            });
        }
    });
    scene.measure(rate)
}

/// Learned costs give keys equal work, and keep the origin evenly busy.
///
/// With cost 1, four reports of 1 s in sixteen requests make 0.265 s each. 12 requests per second
/// are 3.2 seconds of work, as 320 units of 10 ms are.
#[test]
fn keys_get_equal_work_of_an_origin_that_is_evenly_busy() {
    let _half = half_alone();
    best_of_three_runs(|| {
        let (one, work) = both(("12r/s", keys_that_always_ask), "320r/s");
        vec![
            ("busy time", work.mean >= 0.85 * one.mean),
            ("variance", work.variance * 3.0 <= one.variance),
            ("fairness", work.jain >= 0.98 && one.jain < 0.6),
        ]
    });
}

/// 20 keys request 40 pages per second, and one key requests four reports every five seconds.
fn bursts_of_reports(rate: &str, cost: &str) -> Run {
    let scene = Scene::start(rate, cost, "/report", 20, 30);
    let mut at = now();
    thread::scope(|scope| {
        for nth in 0_usize.. {
            thread::sleep(at.saturating_duration_since(now()));
            if scene.is_over() {
                break;
            }
            let scene = &scene;
            let ask = move |path: &'static str, key: String| {
                scope.spawn(move || {
                    let mut client = scene.gateway.connect();
                    scene.ask(&mut client, path, &key);
                });
            };
            ask("/page", format!("k{}", nth % 20));
            if nth % 200 == 0 {
                (0..4).for_each(|_| ask("/report", "reports".to_owned()));
            }
            at += Duration::from_millis(25);
        }
    });
    scene.measure(rate)
}

/// Pages do not wait for a burst of reports if costs are learned.
///
/// Four seconds of work per second are 68 requests per second of this mix on average, or 400 units
/// of 10 ms. With cost 1 the rate is above that, so that a queue of pages ends before the next
/// burst.
#[test]
fn pages_do_not_wait_for_a_burst_of_reports() {
    let _half = half_alone();
    best_of_three_runs(|| {
        let (one, work) = both(("100r/s", bursts_of_reports), "400r/s");
        vec![
            ("busy time", work.mean >= 0.85 * one.mean),
            ("p99 of pages", work.p99 * 2 <= one.p99),
        ]
    });
}
