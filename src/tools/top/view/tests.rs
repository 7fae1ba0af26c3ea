mod places;

use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::json;

use super::super::feed::News;
use super::super::keys::Action;
use super::*;
use crate::remote::client::Lost;

fn zones() -> News {
    let zone = |name: &str, rate: &str| {
        json!({
            "name": name, "key": "$remote_addr", "algorithm": "leaky_bucket", "rate": rate,
            "max_keys": 100_000, "idle_timeout_seconds": 60.0,
            "limits": [
                {"route": "/", "burst": 20, "delay": 0, "max_wait_seconds": 5.0},
                {"route": "= /login", "burst": 5, "nodelay": true, "dry_run": true},
            ],
            "totals": {"passed": 10, "delayed": 70, "rejected": 20, "rejected_dry_run": 0},
            "rejections": {"burst": 18, "max_wait": 2, "keys": 0},
            "keys": {"active": 12, "parked": 3},
        })
    };
    let zones = json!({"zones": [zone("per_client", "10r/s"), zone("all", "500r/s")]});
    News::Zones(serde_json::from_value(zones).unwrap())
}

fn config(error: &serde_json::Value) -> News {
    let config = json!({
        "file": "gateway.toml", "loaded_at": "2026-11-21T06:00:00.123Z", "version": "0.1.0", "error": error,
    });
    News::Config(serde_json::from_value(config).unwrap())
}

fn origins() -> News {
    let server = |port: u16, healthy: bool| {
        json!({
            "url": format!("http://127.0.0.1:{port}"), "healthy": healthy,
            "in_flight": 1, "answered": 80, "failed": 2,
        })
    };
    let servers = [server(9000, true), server(9001, false)];
    let origins = json!({"origins": [
        {"name": "app", "in_flight": 2, "max_in_flight": 8, "servers": servers},
    ]});
    News::Origins(serde_json::from_value(origins).unwrap())
}

/// The same origin with a gate that backs off, and two keys that wait there.
fn gated() -> Model {
    let mut model = model();
    let keys = [
        json!({"key": "alice\u{1b}[2J", "queue_depth": 22, "share": 0.733}),
        json!({"key": "", "queue_depth": 8, "share": 0.267}),
    ];
    let origins = json!({"origins": [{
        "name": "app", "in_flight": 2, "max_in_flight": 8,
        "gate": {
            "queue_depth": 29, "rate": {"file": "200r/s", "now": "173.2451r/s"},
            "max_in_flight": {"file": 8, "now": 6}, "share": "per_client", "queue": 100,
            "backing_off": {"reason": "trouble", "text": "14 of 120"}, "deepest": keys,
        },
        "servers": [{"url": "http://127.0.0.1:9000", "healthy": true}],
    }]});
    model.hear(
        News::Origins(serde_json::from_value(origins).unwrap()),
        at(0),
    );
    let sample = json!({"seq": 61, "time": 1061, "origins": [{"name": "app", "gate": {
        "depth": 30, "rate": {"file": 200.0, "now": 173.2451}, "wait_p99": 0.21,
        "rejected": {"queue": 3, "timeout": 1},
    }}]});
    model.hear(News::Sample(serde_json::from_value(sample).unwrap()), at(1));
    model
}

fn history() -> News {
    let samples = (0..=60).map(|seq| {
        let depth = if seq < 30 { seq / 3 } else { (60 - seq) / 3 };
        json!({
            "seq": seq, "time": 1000 + seq, "reload": i32::from(seq >= 40),
            "zones": [
                {"name": "per_client", "rate": if seq < 40 { 10.0 } else { 5.0 }, "passed": 1, "delayed": 7,
                 "rejected": 2, "depth": depth + 1, "depth_max": depth, "oldest_wait": 0.9, "wait_p95": 0.8,
                 "keys": 12},
                {"name": "all", "rate": 500.0},
            ],
            "deepest": [
                {"zone": "per_client", "key": "192.0.2.1", "depth": 9, "oldest_wait": 0.9},
                {"zone": "per_client", "key": "a\u{1b}[2J\r\n\u{202e}b", "depth": 3, "oldest_wait": 1.5},
            ],
        })
    });
    let samples = samples.map(|sample| serde_json::from_value(sample).unwrap());
    News::History(samples.collect())
}

fn at(seconds: u64) -> Moment {
    Moment::default() + Duration::from_secs(seconds)
}

fn model() -> Model {
    let mut model = Model::default();
    for news in [zones(), config(&json!(null)), origins(), history()] {
        model.hear(news, at(0));
    }
    model
}

/// The page drawn with the given number of columns and lines.
fn page(model: &Model, page: &Page, size: (u16, u16)) -> String {
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    let view = View {
        address: &"127.0.0.1:9090".parse().unwrap(),
        model,
        page,
        paint: Paint::none(),
        now: at(65),
    };
    terminal.draw(|frame| view.draw(frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| -> String { (0..size.0).map(|x| buffer[(x, y)].symbol()).collect() };
    let lines: Vec<String> = (0..size.1).map(|y| line(y).trim_end().to_owned()).collect();
    lines.join("\n")
}

fn after(model: &Model, actions: &[Action]) -> Page {
    let mut page = Page::default();
    for action in actions {
        assert!(page.act(*action, model));
    }
    page
}

#[test]
fn a_large_terminal_shows_all_of_it() {
    let model = model();
    let shown = page(&model, &Page::default(), (100, 30));
    assert_eq!(
        shown,
        include_str!("tests/large.txt").trim_end(),
        "\n{shown}"
    );
}

#[test]
fn a_small_one_shows_the_zones_and_one_panel() {
    let model = model();
    let shown = page(&model, &Page::default(), (60, 15));
    assert_eq!(
        shown,
        include_str!("tests/small.txt").trim_end(),
        "\n{shown}"
    );
    let panels = [
        (vec![Action::Next], "▸ per_client", "key $remote_addr"),
        (
            vec![Action::Next; 2],
            "▸ deepest keys, by depth",
            "per_client, 192.0.2.1",
        ),
        (
            vec![Action::Back],
            "▸ origins",
            "  OUT      http://127.0.0.1:9001",
        ),
        (vec![Action::Down], "▸ zones", "> all           500r/s"),
        (vec![Action::Help], "keys", "Shift-Tab"),
        (
            vec![Action::Sort, Action::Next, Action::Next],
            "by oldest wait",
            "192.0.2.1",
        ),
        (
            vec![
                Action::Sort,
                Action::Sort,
                Action::Sort,
                Action::Next,
                Action::Next,
            ],
            "by rejections in the last minute",
            "nobody was rejected",
        ),
        (vec![Action::Freeze], "9090  frozen  connected", "▸ zones"),
    ];
    for (actions, title, text) in panels {
        let shown = page(&model, &after(&model, &actions), (60, 15));
        assert!(
            shown.contains(title) && shown.contains(text),
            "{actions:?}\n{shown}"
        );
    }
}

#[test]
fn no_size_is_too_small() {
    let model = model();
    let pages = [
        vec![],
        vec![Action::Help],
        vec![Action::Back],
        vec![Action::Next],
    ];
    let pages = pages.map(|actions| after(&model, &actions));
    let columns = [1, 2, 3, 7, 20, 38, 60, 89, 90, 110];
    let sizes = columns.into_iter();
    let sizes = sizes.flat_map(|columns| (1..32).map(move |lines| (columns, lines)));
    // Neighbours have different columns.
    let mut sizes: Vec<(u16, u16)> = sizes.collect();
    sizes.sort_by_key(|(columns, lines)| (*lines, *columns));
    for size in crate::testing::some_of(&sizes, 60) {
        // One page for each size: testing every size with every page takes long.
        page(
            &model,
            &pages[usize::from(size.0 + size.1) % pages.len()],
            size,
        );
    }
    page(&model, &pages[0], (400, 120));
    page(&Model::default(), &pages[0], (100, 30));
}

#[test]
fn no_control_character_is_drawn() {
    let model = model();
    for size in [(60, 15), (200, 60)] {
        let shown = page(&model, &after(&model, &[Action::Next, Action::Next]), size);
        let nasty = |c: char| c != '\n' && !crate::config::is_printable(c);
        assert!(!shown.contains(nasty));
        assert!(shown.contains(r"a\u{1b}[2J\u{d}\u{a}\u{202e}b"), "{shown}");
    }
}

#[test]
fn a_broken_file_and_a_lost_gateway_are_in_the_header() {
    let mut model = model();
    let problem = |line: u32| json!({"line": line, "column": 8, "message": "rate: no unit\u{7}"});
    let problems = [problem(3), problem(7)];
    let error = json!({"since": "2026-11-21T06:01:00Z", "problems": problems});
    model.hear(config(&error), at(0));
    model.hear(News::Lost(Lost::Ended), at(60));
    let shown = page(&model, &Page::default(), (100, 30));
    let header: Vec<&str> = shown.lines().take(2).collect();
    assert_eq!(
        header,
        [
            " drip 0.1.0  127.0.0.1:9090  lost 5s ago, trying again: the connection ended",
            " gateway.toml: broken since 2026-11-21 06:01:00 UTC, line 3: rate: no unit\\u{7} (and 1 more)",
        ]
    );
}

#[test]
fn the_name_of_the_gateway_is_in_the_header() {
    let mut model = model();
    let config = json!({"file": "gateway.toml", "version": "0.1.0", "gateway": "edge 1\u{7}"});
    model.hear(News::Config(serde_json::from_value(config).unwrap()), at(0));
    let shown = page(&model, &Page::default(), (100, 30));
    let begin = r" drip 0.1.0  edge 1\u{7}  127.0.0.1:9090  ";
    assert!(shown.starts_with(begin), "{shown}");
}

#[test]
fn colours_only_add() {
    let model = model();
    let draw = |colours| {
        let mut terminal = Terminal::new(TestBackend::new(100, 30)).unwrap();
        let view = View {
            address: &"127.0.0.1:9090".parse().unwrap(),
            model: &model,
            page: &Page::default(),
            paint: Paint { colours },
            now: at(65),
        };
        terminal.draw(|frame| view.draw(frame)).unwrap();
        terminal.backend().buffer().clone()
    };
    let (plain, painted) = (draw(false), draw(true));
    let is_plain = |cell: &ratatui::buffer::Cell| cell.fg == ratatui::style::Color::Reset;
    assert!(plain.content().iter().all(is_plain));
    assert!(!painted.content().iter().all(is_plain));
    let symbols = |buffer: &ratatui::buffer::Buffer| -> String {
        buffer
            .content()
            .iter()
            .map(ratatui::buffer::Cell::symbol)
            .collect()
    };
    assert_eq!(symbols(&plain), symbols(&painted));
}

#[test]
fn plans_and_bounds_on_what_runs_are_told_where_there_are_some() {
    let mut model = gated();
    let key = json!({"zone": "per_client", "key": "alice", "plan": "gold", "depth": 9});
    let other = json!({"zone": "per_client", "key": "bob", "depth": 3});
    let sample = json!({"seq": 62, "time": 1062, "deepest": [key, other]});
    model.hear(News::Sample(serde_json::from_value(sample).unwrap()), at(2));
    let plans = [
        json!({"plan": "gold", "keys": 2, "rate": "100r/s", "burst": 50, "weight": 8, "class": "interactive"}),
        json!({"plan": "free", "keys": 1, "weight": 1}),
    ];
    if let Some(zone) = model.zones.iter_mut().flatten().next() {
        zone.plans = plans
            .map(|plan| serde_json::from_value(plan).unwrap())
            .to_vec();
        zone.limits[1].in_flight = Some(2);
    }
    if let Some(gate) = model.origins.iter_mut().flatten().next() {
        let gate = gate.gate.as_mut().unwrap();
        gate.deepest[0].plan = Some("gold".into());
    }
    for (actions, lines) in [
        (
            vec![Action::Next; 2],
            [
                " depth  oldest  zone (plan), key",
                ">    9   0.00s  per_client (gold), alice",
                "     3   0.00s  per_client, bob",
            ],
        ),
        (
            vec![Action::Next],
            [
                "plan gold: rate 100r/s, burst 50, weight 8, class interactive, 2 keys",
                "plan free: 1 key",
                "= /login: burst 5, nodelay, in_flight 2, dry_run",
            ],
        ),
        (
            vec![Action::Back],
            [
                r"      22   73%  (gold) alice\u{1b}[2J",
                "       8   27%  (no key)",
                "app: 2 of 6 in flight",
            ],
        ),
    ] {
        let shown = page(&model, &after(&model, &actions), (80, 24));
        for line in lines {
            assert!(shown.contains(line), "no {line} in\n{shown}");
        }
    }
}

#[test]
fn an_outage_is_in_the_panel_of_its_origin() {
    let mut model = gated();
    for (rate, expected) in [
        (
            Some("200r/s"),
            "│  rate 200r/s; down for 1.25s, requests wait up to 5s",
        ),
        (None, "│  down for 1.25s, requests wait up to 5s"),
    ] {
        let outage = json!({"lasts": 1.251, "hold": "5s", "error": "refused"});
        let gate = json!({"queue_depth": 3, "rate": {"file": rate}, "outage": outage});
        let origin = json!({"name": "other", "in_flight": 0, "gate": gate, "servers": []});
        let origins = json!({"origins": [origin]});
        model.hear(
            News::Origins(serde_json::from_value(origins).unwrap()),
            at(2),
        );
        let shown = page(&model, &after(&model, &[Action::Back]), (80, 24));
        let lines = shown.lines().map(|line| line.trim_end_matches(['│', ' ']));
        assert!(lines.into_iter().any(|line| line == expected), "\n{shown}");
    }
}

#[test]
fn what_is_shared_is_in_the_panel_of_its_origin() {
    let mut model = model();
    let sample = |seq, shared| {
        let answers = json!({"bytes": 3_250_586, "max_bytes": 64 << 20});
        json!({"seq": seq, "time": 1000 + seq, "shared_answers": answers,
            "origins": [{"name": "app", "shared": shared}]})
    };
    let first = json!({"asked": 140, "sent": 6, "requests": {"stale": 8}, "wait_p99": 0.2});
    let second = json!({"asked": 100, "sent": 30, "requests": {}});
    for (seq, shared) in [(62, first), (63, second)] {
        let sample = serde_json::from_value(sample(seq, shared)).unwrap();
        model.hear(News::Sample(sample), at(2));
    }
    let shown = page(&model, &after(&model, &[Action::Back]), (200, 30));
    let line = "  120 r/s asked, 18 r/s sent: 85 % shared, waits p99 0.20s, 4 r/s stale; 3.1 MB of 64 MB kept";
    assert!(shown.contains(line), "{shown}");
}

#[test]
fn a_room_is_in_the_panel_of_its_origin() {
    let mut model = model();
    let sample = json!({"seq": 62, "time": 1062, "origins": [{"name": "app", "room": {
        "waiting": 12, "called": 1, "inside": 2, "sessions": {"file": 5, "now": 5}, "wait": 26.0,
        "pace": 0.5, "open": true, "came_lately": 4, "lost_lately": 1,
        "override": {"pause": true, "until": "2026-12-01T09:00:00.000Z", "by": "ops"},
    }}]});
    model.hear(News::Sample(serde_json::from_value(sample).unwrap()), at(2));
    let shown = page(&model, &after(&model, &[Action::Back]), (120, 30));
    for line in [
        "  room: 12 waiting, 1 called, 2 of 5 inside, wait 26.0s",
        "  0.50/s called, 4 came and 1 lost the turn in 5 min; paused until 2026-12-01 09:00:00",
    ] {
        assert!(shown.contains(&line[..48]), "{line}\n{shown}");
    }
}

#[test]
fn a_gate_is_in_the_panel_of_its_origin() {
    let model = gated();
    let origins = after(&model, &[Action::Back]);
    let shown = page(&model, &origins, (80, 24));
    let expected = [
        "│app: 2 of 6 in flight",
        "│  gate: 30 waiting, p99 0.21s, 4 rej/s (queue)",
        "│  rate 173r/s of 200r/s, places 6 (file: 8); backs off: trouble, 14 of 120",
        "│  asked    http://127.0.0.1:9000  0 in flight, 0 answered, 0 failed",
        r"│      22   73%  alice\u{1b}[2J",
        "│       8   27%  (no key)",
    ];
    let panel = shown.split("▸ origins").nth(1).expect("the panel");
    let lines = panel
        .lines()
        .skip(1)
        .map(|line| line.trim_end_matches(['│', ' ']));
    let lines: Vec<&str> = lines.take(expected.len()).collect();
    assert_eq!(lines, expected, "\n{shown}");
    let down: Vec<Action> = std::iter::once(Action::Back)
        .chain([Action::Down; 9])
        .collect();
    let shown = page(&model, &after(&model, &down), (80, 24));
    let panel = shown.split("▸ origins").nth(1).expect("the panel");
    assert!(
        panel
            .lines()
            .nth(1)
            .is_some_and(|line| line.contains("(no key)")),
        "the last line stays\n{shown}"
    );
}

#[test]
fn a_shared_zone_says_where_it_is_and_how_long_its_lease_is() {
    let shown = |zone: serde_json::Value| {
        let mut model = model();
        let zones = json!({"zones": [zone]});
        model.hear(News::Zones(serde_json::from_value(zones).unwrap()), at(0));
        let sample = json!({"seq": 61, "time": 1061, "zones": [{"name": "z"}],
            "store": {"up": true, "operations": {"ok": 5, "leased": 95}}});
        model.hear(News::Sample(serde_json::from_value(sample).unwrap()), at(1));
        page(&model, &after(&model, &[Action::Next]), (80, 25))
    };
    let zone = json!({"name": "z", "rate": "10r/s", "key": "$host", "store": "redis",
        "on_store_failure": "local", "lease_seconds": 0.02});
    let text = shown(zone);
    assert!(
        text.contains("in redis, lease 20ms, local if it is out"),
        "{text}"
    );
    assert!(text.contains("store up, 95 leased/s, 5 ok/s"), "{text}");
    let text = shown(json!({"name": "z", "rate": "10r/s", "store": "memory"}));
    assert!(!text.contains("if it is out"), "{text}");
}

#[test]
fn what_is_wrong_is_told_above_and_at_the_origin() {
    let mut model = model();
    let origins = json!({"origins": [{"name": "app", "servers": [
        {"url": "http://a", "state": "failing", "healthy": false,
         "last_failure": {"at": "2026-11-21T06:00:01Z", "text": "refused\u{1b}"}},
        {"url": "http://b", "state": "out",
         "out": {"since": "2026-11-21T06:00:01Z", "by": "checks"},
         "last_check": {"at": "2026-11-21T06:00:02Z", "text": "it answered 503"}},
    ]}]});
    model.hear(
        News::Origins(serde_json::from_value(origins).unwrap()),
        at(0),
    );
    let sample = json!({"seq": 61, "time": 1061,
        "headline": {"cause": "store_out", "severity": "bad", "title": "The store is out", "evidence": "E", "remedy": "R",
                     "since": 1032.5},
        "store": {"up": false, "out_for": 5.0, "reason": "refused", "operations": {"skipped": 3}},
        "origins": [{"name": "app", "codes": {"2xx": 7, "5xx": 2}, "errors": {"unreachable": 1},
                     "latency": {"p50": 0.01, "p95": 0.02, "p99": 0.03}}],
    });
    model.hear(News::Sample(serde_json::from_value(sample).unwrap()), at(1));
    let shown = page(&model, &after(&model, &[Action::Back]), (110, 25));
    for line in [
        "\n The store is out (since 00:17:12 UTC)\n   E\n   R\n store OUT for 5.00s: refused, 3 skipped/s\n",
        "│  7 2xx/s, 2 5xx/s, 1 unreachable/s, p50 10.0ms p95 20.0ms p99 30.0ms",
        "│  FAILING  http://a",
        r"last failure 2026-11-21 06:00:01 UTC: refused\u{1b}",
        "│  OUT      http://b",
        "out by checks since 2026-11-21 06:00:01 UTC; last check 2026-11-21 06:00:02 UTC: it answered 503",
    ] {
        assert!(shown.contains(line), "no {line} in\n{shown}");
    }
    // What is over is told in the past.
    let sample = json!({"seq": 62, "time": 1062,
        "headline": {"cause": "fine", "severity": "fine", "title": "Fine", "evidence": "E",
                     "ended": {"at": 1059, "title": "The store is out"}},
    });
    model.hear(News::Sample(serde_json::from_value(sample).unwrap()), at(2));
    let shown = page(&model, &after(&model, &[Action::Back]), (110, 25));
    let lines = "\n Fine\n   E\n   Ended 3s ago: The store is out\n";
    assert!(shown.contains(lines), "{shown}");
}
