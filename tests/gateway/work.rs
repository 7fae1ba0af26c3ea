//! Costs that are learned from the time at the origin, over real sockets: an origin of four workers.

use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{
    Client, Exchange, Gateway, Origin, best_of_three, eventually, half_alone, now, whole_lines,
};

/// The work of a light and of a heavy request.
const LIGHT: Duration = Duration::from_millis(20);
const HEAVY: Duration = Duration::from_secs(2);

/// When a worker was busy with what.
type Busy = Mutex<Vec<(String, Instant, Instant)>>;

/// Four workers, each with one request at a time.
struct Workers {
    idle: Mutex<u32>,
    free: Condvar,
    busy: Busy,
}

impl Workers {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            idle: Mutex::new(4),
            free: Condvar::new(),
            busy: Mutex::default(),
        })
    }

    fn work(&self, target: &str, span: Duration) {
        let idle = self.idle.lock().expect("no panic");
        let mut idle = self
            .free
            .wait_while(idle, |idle| *idle == 0)
            .expect("no panic");
        *idle -= 1;
        drop(idle);
        let from = now();
        thread::sleep(span);
        let entry = (target.to_owned(), from, now());
        self.busy.lock().expect("no panic").push(entry);
        *self.idle.lock().expect("no panic") += 1;
        self.free.notify_one();
    }

    fn origin(self: &Arc<Self>) -> Origin {
        let workers = Arc::clone(self);
        Origin::answering(move |exchange: &mut Exchange| {
            let target = exchange.target().to_owned();
            let span = match exchange.field("x-work") {
                Some(millis) => Duration::from_millis(millis.parse().expect("a number")),
                None if target.starts_with("/report/short") => HEAVY / 2,
                None if target.starts_with("/report") => HEAVY,
                None => LIGHT,
            };
            workers.work(&target, span);
            let kind = exchange.field("x-type").unwrap_or("text/plain").to_owned();
            let status = exchange.field("x-status").unwrap_or("200 OK").to_owned();
            let head =
                format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: 2\r\n\r\nok");
            let (head, body) = head.split_at(head.len() - 2);
            exchange.send(head.as_bytes())?;
            if let Some(millis) = exchange.field("x-then") {
                thread::sleep(Duration::from_millis(millis.parse().expect("a number")));
            }
            exchange.send(body.as_bytes())
        })
    }

    /// Seconds that the workers were busy in each second of a span.
    fn by_second(&self, from: Instant, seconds: u64) -> Vec<f64> {
        let busy = self.busy.lock().expect("no panic");
        let of = |nth| {
            let begin = from + Duration::from_secs(nth);
            let end = begin + Duration::from_secs(1);
            let overlap = |(_, a, b): &(String, Instant, Instant)| {
                (*b).min(end)
                    .saturating_duration_since((*a).max(begin))
                    .as_secs_f64()
            };
            busy.iter().map(overlap).sum()
        };
        (0..seconds).map(of).collect()
    }

    /// Seconds of the workers for each of these keys, in a span. What runs at its end counts in part.
    fn by_key(&self, keys: &[String], from: Instant, to: Instant) -> Vec<f64> {
        let busy = self.busy.lock().expect("no panic");
        let of = |key: &String| {
            let end = format!("key={key}");
            let own = busy.iter().filter(|(target, ..)| target.ends_with(&end));
            let own = own.map(|(_, a, b)| (*b).min(to).saturating_duration_since((*a).max(from)));
            own.map(|it| it.as_secs_f64()).sum()
        };
        keys.iter().map(of).collect()
    }
}

fn file(origin: &Origin, rate: &str, routes: &str) -> String {
    format!(
        r#"workers = 2

[origins.app]
servers = ["http://{}"]
rate = "{rate}"
max_in_flight = 4
share = "key"
queue_timeout = "1m"

[zones.key]
key = "$arg_key"
rate = "none"

[log]
format = "json"
access = "access.log"
{routes}"#,
        origin.address
    )
}

fn route(path: &str, cost: &str) -> String {
    format!(
        "\n[[routes]]\npath = \"{path}\"\norigin = \"app\"\nmethods = [\"GET\", \"POST\"]\n{cost}\n"
    )
}

const LEARNED: &str = "cost = { learn = \"time\", unit = \"10ms\", max = 200 }";

fn api(gateway: &Gateway, path: &str) -> Value {
    let answer = gateway.admin(path).expect("an admin port");
    serde_json::from_slice(&answer.body).expect("JSON")
}

/// What `/api/routes` says of a method of a route.
fn cost(gateway: &Gateway, route: &str, method: &str) -> Value {
    let routes = api(gateway, "/api/routes");
    let mut routes = routes["routes"].as_array().expect("routes").iter();
    let found = routes.find(|it| it["name"] == *route).expect("a route");
    found["cost"]["methods"][method].clone()
}

fn ask(gateway: &Gateway, target: &str, fields: &str) -> u16 {
    let mut client = Client::connect(gateway.address());
    client.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n{fields}\r\n").as_bytes());
    client.answer().status
}

/// What was measured of a run.
struct Run {
    mean: f64,
    variance: f64,
    p99: Duration,
    jain: f64,
}

/// A gateway and its origin, which know what pages and reports cost.
struct Scene {
    workers: Arc<Workers>,
    gateway: Gateway,
    _origin: Origin,
    keys: Vec<String>,
    /// How long pages took.
    took: Mutex<Vec<Duration>>,
    /// When the measuring begins and ends.
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

    /// Asks once on this connection.
    fn ask(&self, client: &mut Client, path: &str, key: &str) {
        let asked = now();
        client.get(&format!("{path}?key={key}"));
        assert_eq!(client.answer().status, 200);
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

/// Runs with cost 1 and with learned costs, both at once: all of it mostly waits.
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

/// Repeats both runs, which last for seconds and so meet chance, as other close measurements.
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

/// Twelve keys ask for pages and then four for reports, each again as soon as it has an answer. With
/// cost 1 the order in which they came stays that of the round, and the reports are sent together.
fn keys_that_always_ask(rate: &str, cost: &str) -> Run {
    let scene = Scene::start(rate, cost, "/report/short", 16, 30);
    thread::scope(|scope| {
        for (nth, key) in scene.keys.iter().enumerate() {
            let scene = &scene;
            thread::sleep(Duration::from_millis(25));
            scope.spawn(move || {
                let path = if nth < 12 { "/page" } else { "/report/short" };
                let mut client = Client::connect(scene.gateway.address());
                while !scene.is_over() {
                    scene.ask(&mut client, path, key);
                }
            });
        }
    });
    scene.measure(rate)
}

/// With cost 1, four reports of 1 s in sixteen requests make 0.265 s each: 12 a second are 3.2 seconds
/// of work, as 320 units of 10 ms are.
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

/// 40 pages a second of 20 keys, and every five seconds four reports of one.
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
                    let mut client = Client::connect(scene.gateway.address());
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

/// Four seconds of work a second are 68 requests a second of this mix on average, or 400 units of
/// 10 ms. With cost 1 the rate is above that, so that a queue of pages ends before the next burst.
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

#[test]
fn a_cost_is_learned_by_route_and_method_and_outlives_a_reload() {
    let workers = Workers::new();
    let origin = workers.origin();
    let routes = route("/page", LEARNED) + &route("/report", LEARNED);
    let text = file(&origin, "1000r/s", &routes);
    let gateway = Gateway::start(&text);
    assert_eq!(cost(&gateway, "/page", "GET"), Value::Null);
    for _ in 0..4 {
        assert_eq!(ask(&gateway, "/page", "X-Work: 200\r\n"), 200);
    }
    let page = cost(&gateway, "/page", "GET");
    assert_eq!(page["source"], "quiet");
    let learned = page["cost"].as_u64().expect("a cost");
    assert!((20..=40).contains(&learned), "{page}");
    // A new route, and a new method, count as the median of the others.
    assert_eq!(
        ask(&gateway, "/report", "X-Work: 1\r\nX-Status: 500 No\r\n"),
        500
    );
    let report = cost(&gateway, "/report", "GET");
    assert_eq!(
        (&report["source"], &report["cost"]),
        (&Value::from("median"), &page["cost"])
    );
    let mut client = Client::connect(gateway.address());
    client.send(b"POST /page HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nX-Work: 1\r\n\r\n");
    assert_eq!(client.answer().status, 200);
    assert_eq!(cost(&gateway, "/page", "POST")["source"], "median");
    // The metrics say it, too.
    let metrics = gateway.metrics();
    let labels = [("route", "/page"), ("method", "GET")];
    assert_eq!(
        metrics.count("drip_route_cost", &labels),
        i64::try_from(learned).expect("few")
    );

    // Another unit: the time stays known, and with it the cost.
    gateway.site.write(&text.replace("10ms", "100ms"));
    eventually("the new unit", || {
        let page = cost(&gateway, "/page", "GET");
        page["source"] == "quiet"
            && page["cost"]
                .as_u64()
                .is_some_and(|it| (2..=4).contains(&it))
    });
}

#[test]
fn a_request_is_charged_what_it_took_and_a_stream_to_its_head() {
    let workers = Workers::new();
    let origin = workers.origin();
    let shadow = LEARNED.replace("200 }", "200, mode = \"shadow\" }");
    let routes = route("/page", LEARNED) + &route("/shadow", &shadow);
    let gateway = Gateway::start(&file(&origin, "1000r/s", &routes));
    // Nothing is known of the first one, so it is sent at once for 1, and billed afterwards.
    assert_eq!(ask(&gateway, "/page?a", "X-Work: 500\r\n"), 200);
    assert_eq!(ask(&gateway, "/page?b", "X-Work: 1\r\n"), 200);
    assert_eq!(
        ask(
            &gateway,
            "/page?c",
            "X-Work: 1\r\nX-Type: Text/Event-Stream; a=b\r\nX-Then: 600\r\n"
        ),
        200
    );
    for _ in 0..4 {
        assert_eq!(ask(&gateway, "/shadow", "X-Work: 100\r\n"), 200);
    }
    let shown = cost(&gateway, "/shadow", "GET");
    assert!(shown["cost"].as_u64().is_some_and(|it| it >= 10), "{shown}");
    let log = gateway.site.folder().join("access.log");
    eventually("all lines", || whole_lines(&log).lines().count() == 7);
    let lines: Vec<Value> = whole_lines(&log)
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let charged: Vec<u64> = lines
        .iter()
        .map(|it| it["cost"].as_u64().expect("a cost"))
        .collect();
    assert!((50..=200).contains(&charged[0]), "{charged:?}");
    assert!(charged[1] < 50 && charged[2] < 50, "{charged:?}");
    assert_eq!(charged[3..], [1; 4]);
    // Headlines call the rate of such a gate units.
    let gate = || api(&gateway, "/api/now")["sample"]["origins"][0]["gate"].clone();
    eventually("the rate counts units", || gate()["costs"] == true);
}

/// Nothing is learned, nor billed, while the back-off holds the origin's rate down.
#[test]
fn nothing_is_learned_while_the_back_off_holds() {
    let workers = Workers::new();
    let origin = workers.origin();
    let backoff = "\n[origins.app.backoff]\ntrip = \"10%\"\n";
    let text = file(
        &origin,
        "1000r/s",
        &(backoff.to_owned() + &route("/page", LEARNED)),
    );
    let gateway = Gateway::start(&text);
    for _ in 0..4 {
        assert_eq!(ask(&gateway, "/page", "X-Work: 100\r\n"), 200);
    }
    let before = cost(&gateway, "/page", "GET");
    // Enough trouble for a window.
    let is_lowered = || {
        let metrics = gateway.metrics();
        let rate = metrics.value("drip_origin_rate", &[("origin", "app"), ("of", "now")]);
        rate.is_some_and(|rate| rate < 999.0)
    };
    eventually("a cut", || {
        for _ in 0..4 {
            ask(&gateway, "/page", "X-Work: 1\r\nX-Status: 503 Busy\r\n");
        }
        is_lowered()
    });
    for _ in 0..12 {
        assert_eq!(ask(&gateway, "/page", "X-Work: 1\r\n"), 200);
    }
    assert!(is_lowered(), "the cut lasts for seconds");
    let after = cost(&gateway, "/page", "GET");
    assert_eq!(after["cost"], before["cost"]);
    assert!(after["requests"].as_u64() >= before["requests"].as_u64().map(|it| it + 12));
}
