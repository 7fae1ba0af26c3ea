//! The state of the gateway as text, for people and scripts.

use super::address::Address;
use super::model::{Model, Row, ServerState, Sort};
use super::view::file;
use super::view::numbers::wait;
use super::view::overridden;
use super::view::trouble::{headline, of_server, store};
use crate::status::views::Plain;

const HEADING: [&str; 10] = [
    "zone", "rate", "in/s", "out/s", "depth", "deepest", "oldest", "p95", "rej/s", "keys",
];

/// The whole text. It ends with a line feed.
pub(super) fn text(address: &Address, model: &Model) -> String {
    let mut lines = Vec::new();
    if let Some(config) = &model.config {
        let stopping = if model.is_stopping() {
            ", stopping"
        } else {
            ""
        };
        lines.push(format!("drip {} at {address}{stopping}", config.version));
        lines.push(file(config));
    }
    if let Some(sample) = model.now() {
        lines.extend(headline(sample));
        lines.extend(sample.store.as_ref().map(store));
    }
    lines.push(String::new());
    let mut rows = vec![HEADING.map(str::to_owned).to_vec()];
    rows.extend(model.rows().iter().map(zone));
    lines.extend(columns(&rows, &[0, 1]));
    for row in model.rows() {
        let told = overridden::lines(&row.now).into_iter();
        lines.extend(told.map(|text| format!("{}: {text}", row.name)));
    }
    lines.push(String::new());
    lines.extend(servers(model));
    lines.extend(gates(model));
    lines.extend(deepest(model));
    lines.join("\n") + "\n"
}

/// The deepest keys; nothing if none waits.
fn deepest(model: &Model) -> Vec<String> {
    let heading = ["zone", "depth", "oldest", "key"];
    let mut table = KeyTable::new(heading);
    for key in model.deepest(Sort::Depth) {
        let (depth, oldest) = (key.depth.to_string(), wait(key.oldest_wait));
        let row = [key.zone.to_string(), depth, oldest, key.key.to_string()];
        table.push(row, key.plan.as_ref());
    }
    table.lines()
}

/// A table of keys, with a column for their plans if any has one.
struct KeyTable {
    rows: Vec<[String; 4]>,
    plans: Vec<String>,
}

impl KeyTable {
    /// `heading` is that of three columns, and of the keys.
    fn new(heading: [&str; 4]) -> Self {
        Self {
            rows: vec![heading.map(str::to_owned)],
            plans: vec!["plan".to_owned()],
        }
    }

    fn push(&mut self, row: [String; 4], plan: Option<&Plain>) {
        self.rows.push(row);
        self.plans
            .push(plan.map(Plain::to_string).unwrap_or_default());
    }

    /// The lines below an empty one; nothing without a key.
    fn lines(self) -> Vec<String> {
        if self.rows.len() == 1 {
            return Vec::new();
        }
        let has_plans = self.plans.iter().skip(1).any(|plan| !plan.is_empty());
        let with_plan = |(row, plan): ([String; 4], String)| {
            let mut row = row.to_vec();
            if has_plans {
                row.insert(3, plan);
            }
            row
        };
        let rows: Vec<_> = self
            .rows
            .into_iter()
            .zip(self.plans)
            .map(with_plan)
            .collect();
        let mut lines = vec![String::new()];
        lines.extend(columns(&rows, &[0, 3, 4]));
        lines
    }
}

fn servers(model: &Model) -> Vec<String> {
    let heading = [
        "origin",
        "server",
        "state",
        "in flight",
        "answered",
        "failed",
        "5xx",
        "p99",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    for origin in model.origins() {
        rows.extend(origin.servers.iter().map(|server| {
            let errors = server.codes.get(&Plain::from("5xx"));
            let p99 = server.latency.p99;
            vec![
                origin.name.to_string(),
                server.url.to_string(),
                ServerState::of(server).name().to_owned(),
                server.in_flight.to_string(),
                server.answered.to_string(),
                server.failed.to_string(),
                errors.copied().unwrap_or_default().to_string(),
                p99.map_or("-".to_owned(), wait),
            ]
        }));
    }
    let mut lines = columns(&rows, &[0, 1, 2]);
    let servers = model.origins().iter().flat_map(|origin| &origin.servers);
    let told = servers.filter_map(|it| Some(format!("{}: {}", it.url, of_server(it)?)));
    lines.extend(told);
    lines
}

/// The gates of origins, and their deepest keys; nothing without a gate.
fn gates(model: &Model) -> Vec<String> {
    let heading = [
        "gate",
        "rate",
        "in flight",
        "waiting",
        "p99",
        "rej/s",
        "backs off",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    let mut keys = KeyTable::new(["gate", "waiting", "part", "key"]);
    for origin in model.origins() {
        let Some(gate) = model.gate(origin) else {
            continue;
        };
        let in_flight = match gate.places() {
            Some(most) => format!("{} of {most}", origin.in_flight),
            None => origin.in_flight.to_string(),
        };
        rows.push(vec![
            origin.name.to_string(),
            gate.rate().unwrap_or("none".to_owned()),
            in_flight,
            gate.depth().to_string(),
            gate.p99().map_or("-".to_owned(), wait),
            gate.rejected().to_string(),
            gate.backing_off().unwrap_or("no".to_owned()),
        ]);
        for key in gate.keys() {
            let row = [
                origin.name.to_string(),
                key.queue_depth.to_string(),
                format!("{:.0}%", key.share * 100.0),
                key.key.to_string(),
            ];
            keys.push(row, key.plan.as_ref());
        }
    }
    if rows.len() == 1 {
        return Vec::new();
    }
    let mut lines = vec![String::new()];
    lines.extend(columns(&rows, &[0, 1, 6]));
    lines.extend(keys.lines());
    lines
}

fn zone(row: &Row) -> Vec<String> {
    vec![
        row.name.to_string(),
        row.rate.to_string(),
        row.came.to_string(),
        row.now.out().to_string(),
        row.now.depth.to_string(),
        row.now.depth_max.to_string(),
        wait(row.now.oldest_wait),
        row.now.wait_p95.map_or("-".to_owned(), wait),
        row.now.rejected.to_string(),
        row.now.keys.to_string(),
    ]
}

/// Aligns rows in columns. The columns in `left` are texts, the others numbers.
fn columns(rows: &[Vec<String>], left: &[usize]) -> Vec<String> {
    let count = rows.first().map_or(0, Vec::len);
    let wide = |text: &str| ratatui::text::Span::raw(text).width();
    let widest = |at: usize| {
        rows.iter()
            .map(|row| wide(&row[at]))
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..count).map(widest).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate().map(|(at, text)| {
            let fill = " ".repeat(widths[at] - wide(text));
            if left.contains(&at) {
                format!("{text}{fill}")
            } else {
                format!("{fill}{text}")
            }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}
