//! Tests of dashboards and alerts with a gateway under load, scraped by Prometheus.

use std::collections::HashSet;
use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::programs::redis::Redis;
use crate::prometheus::alerts::promtool;
use crate::prometheus::board::{self, items, labels_of_legend, text};
use crate::prometheus::exposition::Exposition;
use crate::prometheus::panels::{ask, has_number, values};
use crate::prometheus::runbooks;
use crate::prometheus::server::Prometheus;
use crate::support::secure::write_pair;
use crate::support::{Client, Gateway, Origin, Site, eventually, free_address, now};

/// Duration of the load before the panels are evaluated.
const LOAD: Duration = Duration::from_secs(16);

/// Panels and annotations that may be empty under this load although their metrics exist.
///
/// No zone has an override.
const MAY_BE_EMPTY: [&str; 2] = ["\"Overrides in force\"", "\"Override in force\""];

/// Zones of [`file`]. The first has everything that a panel can show.
const ZONES: [&str; 5] = ["clients", "site", "strict", "dry", "shared"];

/// Alerts that must not fire under this load.
const QUIET: &str = "DripConfigReloadFailed DripOriginDown DripOriginServerDown DripDown DripStoreDown DripStoreRefuses \
    DripGateAlone DripRoomStuck DripOriginBacksOff DripOriginUnanswered DripKeyFlood DripFloodGuard DripOverrideInForce";

/// Path, origin and rest of each route.
const ROUTES: &str = r#"
/shared app limits = [{ zone = "shared", burst = 2 }]
/ app limits = [{ zone = "clients", burst = 4 }]
/site app limits = [{ zone = "site", burst = 50 }]
/strict app limits = [{ zone = "strict", burst = 20 }]; max_wait = "150ms"
/dry app limits = [{ zone = "dry", burst = 1 }]; dry_run = true
/fragile fragile
/failing failing
/gated gated cost = { learn = "time", unit = "100ms", max = 64 }
/shop shop
/together together
/news news collapse = { keep = "100ms" }"#;

fn file(origins: [SocketAddr; 4], redis: &str, site_rate: &str) -> String {
    let [app, spare, fragile, failing] = origins;
    let mut file = format!(
        r#"
[server.tls]
cert = "a.pem"
key = "a.key"

[origins]
app = {{ servers = ["http://{app}", "http://{spare}"] }}
fragile = {{ servers = ["http://{fragile}"], health = {{ path = "/health", interval = "200ms", unhealthy_after = 2 }} }}
failing = {{ servers = ["http://{failing}"] }}
news = {{ servers = ["http://{app}"], rate = "20r/s", response_buffer = "64KB" }}
together = {{ servers = ["http://{app}"], rate = "20r/s", store = "redis" }}

[origins.gated]
servers = ["http://{app}"]
rate = "20r/s"
store = "redis"
max_in_flight = 10
share = "clients"
queue = 4
classes = {{ interactive = 8, batch = 1 }}

[origins.shop]
servers = ["http://{app}"]

[origins.shop.room]
sessions = 50
admit = "2r/s"
idle = "2s"
claim = "4s"
secret = "0123456789abcdef"

[zones]
site = {{ key = "$host", rate = "{site_rate}" }}
strict = {{ key = "$host", rate = "10r/s" }}
dry = {{ key = "$host", rate = "5r/s" }}
shared = {{ key = "$host", rate = "5r/s", store = "redis" }}

[zones.clients]
key = "$arg_key"
rate = "10r/s"
max_keys = 3

[zones.clients.plans]
gold = {{ keys = ["b"], weight = 2, class = "batch" }}

[redis]
url = "{redis}"
timeout = "1s"
"#
    );
    for route in ROUTES.trim().lines() {
        let mut parts = route.splitn(3, ' ');
        let [path, origin] = [(); 2].map(|()| parts.next().expect("a part"));
        let more = parts.next().unwrap_or_default().replace("; ", "\n");
        file += &format!("[[routes]]\npath = \"{path}\"\norigin = \"{origin}\"\n{more}\n");
    }
    file
}

/// Clients that send a new request after each response, until this is dropped.
struct Crowd {
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<()>>,
}

impl Crowd {
    fn new(to: SocketAddr, targets: &[(&'static str, usize)]) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let mut clients = Vec::new();
        for &(target, count) in targets {
            for _ in 0..count {
                let stop = Arc::clone(&stop);
                clients.push(thread::spawn(move || ask_on(to, target, &stop)));
            }
        }
        Self { stop, clients }
    }
}

fn ask_on(to: SocketAddr, target: &str, stop: &AtomicBool) {
    let mut client = Client::connect(to);
    while !stop.load(Ordering::Relaxed) {
        client.get(target);
        if client.answer().status != 200 {
            thread::sleep(Duration::from_millis(200));
        } else if ["/dry", "/fragile", "/news"].contains(&target) {
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients.drain(..) {
            // A client that failed has reported it.
            let _ended = client.join();
        }
    }
}

/// Waits until all of these alerts are in a state.
fn await_all(prometheus: &mut Prometheus, state: &str, alerts: &str) {
    for alert in alerts.split(' ') {
        prometheus.wait(alert, |prometheus| prometheus.state(alert) == state);
    }
}

fn sleep_until(moment: Instant) {
    thread::sleep(moment.saturating_duration_since(now()));
}

#[test]
fn panels_and_alerts_show_what_happens_to_a_gateway() {
    let [app, spare, fragile] = [(); 3].map(|()| Origin::start());
    let mut redis = Redis::start();
    let redis_url = redis.url();
    let failing = Origin::answering(|exchange| {
        exchange.send(b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n")
    });
    let origins = [app.address, spare.address, fragile.address, failing.address];
    let site = Site::new();
    write_pair(site.folder(), "a", &["a.test"]);
    // The clients use no TLS: the address exists only for its metrics.
    let secure = free_address();
    let write = |site: &Site, rate: &str| {
        let text = site.text(&file(origins, &redis_url, rate));
        let one = format!("[\"{}\"]", site.address);
        let both = format!(
            "[{{ address = \"{}\", tls = false }}, \"{secure}\"]",
            site.address
        );
        fs::write(site.file(), text.replacen(&one, &both, 1)).expect("a file");
    };
    write(&site, "20r/s");
    let gateway = Gateway::start_at(site);
    let mut prometheus = Prometheus::start(&gateway);
    let began = now();
    let crowd = Crowd::new(
        gateway.address(),
        &[
            ("/?key=a", 7),
            ("/?key=b", 6),
            ("/site", 20),
            ("/strict", 12),
            ("/dry", 2),
            ("/fragile", 1),
            ("/failing", 1),
            ("/shared", 1),
            ("/together", 2),
            ("/shop", 2),
            ("/news", 3),
            ("/gated?key=a", 6),
            ("/gated?key=b", 2),
        ],
    );
    let one_by_one = thread::spawn({
        let to = gateway.address();
        // More keys than the zone remembers.
        move || {
            for nth in 0..20 {
                Client::ask(to, &format!("/?key=other-{nth}")).answer();
            }
        }
    });

    achieved_becomes(&prometheus, 20.0);
    write(&gateway.site, "40r/s");
    gateway.wait_for_line("the changed file is in force");
    achieved_becomes(&prometheus, 40.0);
    sleep_until(began + LOAD);
    one_by_one.join().expect("a crowd of keys");
    // A client that disconnects while it waits.
    drop(gateway.ask("/site"));
    eventually("its status is counted", || {
        gateway.metrics().0.contains("code=\"499\"")
    });

    // The output is valid, with names that follow Prometheus's rules.
    promtool(&["check", "metrics"], &gateway.metrics().0);
    names_are_known(&gateway, &prometheus);
    for zone in ZONES {
        panels_are_evaluated(&mut prometheus, zone);
    }
    variables_have_values(&prometheus);
    a_reload_is_a_line(&prometheus);
    each_alert_is_well(&prometheus);

    for alert in QUIET.split(' ') {
        assert_eq!(prometheus.state(alert), "inactive", "{alert}");
    }
    await_all(
        &mut prometheus,
        "firing",
        "DripRejecting DripQueueNearBurst DripOriginErrors",
    );
    gateway.site.write("rate = ");
    drop(fragile);
    redis.kill();
    let down = "DripConfigReloadFailed DripOriginServerDown DripStoreDown DripGateAlone";
    await_all(&mut prometheus, "firing", down);
    await_all(&mut prometheus, "firing", "DripOriginDown");
    annotations_are_whole(&prometheus);

    write(&gateway.site, "40r/s");
    let fragile = Origin::at(&origins[2].to_string(), |exchange| exchange.reply(b"ok"));
    redis.restart();
    await_all(&mut prometheus, "inactive", down);
    drop((crowd, gateway));
    await_all(&mut prometheus, "firing", "DripDown");
    drop((app, spare, fragile, failing));
}

/// Checks that each metric, label and value in a dashboard or a rule exists.
fn names_are_known(gateway: &Gateway, prometheus: &Prometheus) {
    let exposition = Exposition::read(&gateway.metrics().0);
    let mut problems = Vec::new();
    let mut check = |source: &str, expression: &str| {
        let found = exposition.problems(expression).into_iter();
        problems.extend(found.map(|problem| format!("{source}: {problem}")));
    };
    for board in board::all() {
        let variables = board.variables().into_iter().map(|(query, _)| query);
        for query in board
            .queries()
            .into_iter()
            .chain(board.annotations())
            .chain(variables)
        {
            check(&query.source, &query.expression);
        }
    }
    for rule in prometheus.rules() {
        check(text(&rule, "name"), text(&rule, "query"));
    }
    for runbook in runbooks::all() {
        for expression in &runbook.expressions {
            check(&runbook.alert, expression);
            let answer = prometheus.query(expression);
            assert!(answer.is_ok(), "{}: {answer:?}", runbook.alert);
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Checks that each expression of each panel is valid, and shows data where it should.
///
/// The labels in its legend must exist.
fn panels_are_evaluated(prometheus: &mut Prometheus, zone: &str) {
    let mut problems = Vec::new();
    // A scrape may fail on a busy machine.
    prometheus.wait("the panels show something", |prometheus| {
        let before = std::mem::replace(&mut problems, problems_of_panels(prometheus, zone));
        if before != problems {
            println!("{}", problems.join("\n"));
        }
        problems.is_empty()
    });
}

fn problems_of_panels(prometheus: &Prometheus, zone: &str) -> Vec<String> {
    let (mut problems, mut evaluated) = (Vec::new(), 0);
    for board in board::all() {
        for query in board.queries().into_iter().chain(board.annotations()) {
            evaluated += 1;
            let series = match ask(prometheus, &query, zone) {
                Ok(series) => series,
                Err(problem) => {
                    problems.push(problem);
                    continue;
                }
            };
            let mut may_be_empty = MAY_BE_EMPTY.iter();
            let may_be_empty = may_be_empty.any(|panel| query.source.contains(panel));
            if zone == ZONES[0] && !may_be_empty && !series.iter().any(has_number) {
                problems.push(format!("{} is empty: {}", query.source, query.expression));
            }
            for label in labels_of_legend(&query.legend) {
                if series
                    .iter()
                    .any(|series| series["metric"][label].as_str().is_none())
                {
                    problems.push(format!("{}: no label {label}", query.source));
                }
            }
        }
    }
    assert!(evaluated > 110, "only {evaluated}");
    problems
}

/// Checks that the variables of the dashboards offer the existing values.
fn variables_have_values(prometheus: &Prometheus) {
    let mut found = Vec::new();
    for board in board::all() {
        for (query, label) in board.variables() {
            let series = ask(prometheus, &query, "").expect("an answer");
            let values: HashSet<_> = series
                .iter()
                .map(|series| text(&series["metric"], &label).to_owned())
                .collect();
            assert!(!values.is_empty(), "{}", query.source);
            if label == "zone" {
                found.extend(values);
            }
        }
    }
    found.sort();
    let mut zones = ZONES;
    zones.sort_unstable();
    assert_eq!(found, zones);
}

/// Checks that the start and the retune are two lines, each at its time.
fn a_reload_is_a_line(prometheus: &Prometheus) {
    let boards = board::all();
    let zone = boards
        .iter()
        .find(|board| board.uid() == "drip-zone")
        .expect("the zone");
    let annotations = zone.annotations();
    let moments = ask(prometheus, &annotations[0], "").expect("an answer");
    let values = items(&moments[0]["values"]).map(|sample| sample[1].as_str().expect("a moment"));
    let mut lines: Vec<_> = values
        .map(|value| value.parse::<f64>().expect("a number"))
        .collect();
    lines.dedup();
    assert_eq!(lines.len(), 2, "start and retune: {lines:?}");
    assert!(lines[1] > lines[0], "{lines:?}");
    let wrong = ask(prometheus, &annotations[1], "").expect("an answer");
    let is_zero = items(&wrong[0]["values"]).all(|sample| sample[1] == "0");
    assert!(is_zero, "no error yet");
}

/// Waits until the panel shows this rate, per second, as configured and as achieved.
fn achieved_becomes(prometheus: &Prometheus, rate: f64) {
    let boards = board::all();
    let zone = boards.iter().find(|board| board.uid() == "drip-zone");
    let queries = zone.expect("the zone").queries();
    for legend in ["achieved", "rate per key"] {
        let query = queries.iter().find(|query| {
            query.source.contains("configured and achieved") && query.legend == legend
        });
        let query = query.expect("a line of the panel");
        eventually(&format!("{} is {rate}", query.legend), || {
            let series = ask(prometheus, query, "site").expect("an answer");
            let last = series.first().and_then(|one| values(one).pop());
            last.is_some_and(|last| (last - rate).abs() < 0.15 * rate)
        });
    }
}

/// Checks that each rule is evaluated, and has a description and a severity.
fn each_alert_is_well(prometheus: &Prometheus) {
    let rules = prometheus.rules();
    assert!(rules.len() >= 18, "{}", rules.len());
    for rule in &rules {
        let name = text(rule, "name");
        assert_eq!(rule["health"], "ok", "{name}: {}", rule["lastError"]);
        let severity = text(&rule["labels"], "severity");
        let is_known = ["info", "warning", "critical"].contains(&severity);
        assert!(is_known, "{name}: {severity}");
        for annotation in ["summary", "description"] {
            assert!(!text(&rule["annotations"], annotation).is_empty(), "{name}");
        }
    }
}

/// Checks that the annotations of firing alerts have all their values.
fn annotations_are_whole(prometheus: &Prometheus) {
    let mut fired = HashSet::new();
    for rule in prometheus.rules() {
        for alert in items(&rule["alerts"]).filter(|alert| alert["state"] == "firing") {
            let name = text(&rule, "name").to_owned();
            for annotation in ["summary", "description", "dashboard_url"] {
                let said = text(&alert["annotations"], annotation);
                for wrong in ["no value", "{{", "  ", "error expanding"] {
                    assert!(!said.contains(wrong), "{name}: {said}");
                }
            }
            fired.insert(name);
        }
    }
    assert!(fired.len() >= 4, "{fired:?}");
}
