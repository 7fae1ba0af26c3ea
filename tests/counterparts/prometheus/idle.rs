//! Tests of the dashboards of a gateway without requests.

use std::thread;
use std::time::Duration;

use crate::programs::redis::Redis;
use crate::prometheus::board::{self, Board, Query, text};
use crate::prometheus::panels::{ask, ask_now, has_number, values};
use crate::prometheus::server::Prometheus;
use crate::support::{Gateway, Origin};

/// Tiles with counts or shares: 0 if nothing happens.
const ZERO: &str = "In, Out, Rejected, 5xx to clients, Waiting, New keys, Origin 5xx, No answer, Backing off, \
    Overrides, Achieved, Elsewhere, Clients that left, Flooded";

/// Tiles of a quantile: no value if nothing happens.
const NO_VALUE: [&str; 3] = ["Wait p99", "Client p95", "Lateness p99"];

/// Zones. One has no rate, so a gauge is `NaN` for it.
const ZONES: [&str; 3] = ["clients", "unpaced", "shared"];

fn file(origin: &Origin, redis: &Redis) -> String {
    let (origin, redis) = (origin.address, redis.url());
    format!(
        r#"
[origins]
app = {{ servers = ["http://{origin}"] }}
gated = {{ servers = ["http://{origin}"], rate = "20r/s", max_in_flight = 10, classes = {{ interactive = 8, batch = 1 }} }}

[zones]
unpaced = {{ key = "$host", rate = "none" }}
shared = {{ key = "$host", rate = "50r/s", store = "redis" }}

[zones.clients]
key = "$arg_key"
rate = "10r/s"
plans = {{ gold = {{ keys = ["b"], class = "batch" }} }}

[redis]
url = "{redis}"
timeout = "1s"

[[routes]]
path = "/"
origin = "app"
limits = [{{ zone = "clients", burst = 2 }}, {{ zone = "unpaced", in_flight = 5 }}]

[[routes]]
path = "/gated"
origin = "gated"
limits = [{{ zone = "shared", burst = 5 }}]
"#
    )
}

/// Returns the panels of a board that have queries, each with its title and queries.
fn asked(board: &Board) -> Vec<(&str, bool, Vec<Query>)> {
    let panels = board
        .panels()
        .into_iter()
        .filter(|panel| panel["type"] != "row");
    panels
        .map(|panel| {
            let says = panel["fieldConfig"]["defaults"]["noValue"].is_string();
            (text(panel, "title"), says, board.queries_of(panel))
        })
        .collect()
}

/// Checks that no value is `NaN` or infinite, and each panel has a number or a reason.
fn nothing_is_nan(prometheus: &Prometheus) {
    let mut problems = Vec::new();
    for board in board::all() {
        for zone in ZONES {
            for (title, says, queries) in asked(&board) {
                let mut shows = false;
                for query in &queries {
                    let series = ask(prometheus, query, zone).expect("an answer");
                    shows |= series.iter().any(has_number);
                    if series
                        .iter()
                        .flat_map(values)
                        .any(|value| !value.is_finite())
                    {
                        problems.push(format!("{zone}, {}: {}", query.source, query.expression));
                    }
                }
                if !shows && !says {
                    problems.push(format!("{zone}, {}, {title:?} is empty", board.file));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn tiles_are_idle(prometheus: &Prometheus) {
    let mut seen = 0;
    for board in board::all() {
        for panel in board
            .panels()
            .into_iter()
            .filter(|panel| panel["type"] == "stat")
        {
            let (title, queries) = (text(panel, "title"), board.queries_of(panel));
            let [query] = &queries[..] else {
                panic!("{title} has several values")
            };
            let series = ask_now(prometheus, query, ZONES[0]).expect("an answer");
            let now: Vec<_> = series.iter().flat_map(values).collect();
            if ZERO.split(", ").any(|it| it == title) {
                assert_eq!(now, [0.0], "{title}");
                seen += 1;
            } else if NO_VALUE.contains(&title) {
                assert_eq!(now, [0.0; 0], "{title}");
                seen += 1;
            }
        }
    }
    let least = ZERO.split(", ").count() + NO_VALUE.len();
    assert!(seen >= least, "only {seen}");
}

#[test]
fn an_idle_gateway_shows_zero_or_no_value_and_never_nan() {
    let origin = Origin::start();
    let redis = Redis::start();
    let gateway = Gateway::start(&file(&origin, &redis));
    let mut prometheus = Prometheus::start(&gateway);
    let scrapes = |count: f64| {
        move |prometheus: &mut Prometheus| {
            let asked = prometheus.value("count_over_time(up[1h])");
            thread::sleep(Duration::from_millis(200));
            asked >= Some(count)
        }
    };
    prometheus.wait("some scrapes", scrapes(4.0));
    nothing_is_nan(&prometheus);
    tiles_are_idle(&prometheus);

    let mut waiting: Vec<_> = (0..3).map(|_| gateway.ask("/?key=a")).collect();
    for client in &mut waiting {
        assert_eq!(client.answer().status, 200);
    }
    assert_eq!(gateway.fetch("/gated?key=b").status, 200);
    // Longer than the interval of the rates, so that all of it is over.
    let so_far = prometheus
        .value("count_over_time(up[1h])")
        .expect("scrapes");
    prometheus.wait("the rates are over", scrapes(so_far + 9.0));
    nothing_is_nan(&prometheus);
    tiles_are_idle(&prometheus);
    let boards = board::all();
    let queries = boards.iter().flat_map(Board::queries);
    let waits: Vec<_> = queries
        .filter(|query| query.source.contains("\"Wait p99\""))
        .collect();
    for query in &waits {
        let series = ask(&prometheus, query, ZONES[0]).expect("an answer");
        assert!(
            series.iter().any(has_number),
            "{}: two waited, and nothing shows it",
            query.source
        );
    }
    assert_eq!(waits.len(), 2, "one in each dashboard");
}
