//! The state of the gateway as text, for people and scripts.

use std::iter;

use super::columns::columns;
use super::model::{Model, Sort};
use super::view::file;
use super::view::numbers::wait;
use super::view::trouble::{headline, of_server, store};
use super::view::zones::COLUMNS;
use super::view::{overridden, places, room, shared};
use crate::config::AdminAddress;
use crate::status::views::Plain;

/// The whole text. It ends with a line feed.
pub(super) fn text(address: &AdminAddress, model: &Model) -> String {
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
    lines.extend(zones(model));
    lines.push(String::new());
    lines.extend(servers(model));
    lines.extend(gates(model));
    lines.extend(borrowed(model));
    lines.extend(rooms(model));
    lines.extend(shares(model));
    lines.extend(deepest(model));
    lines.join("\n") + "\n"
}

/// The zones, and what of them is not as in the file.
fn zones(model: &Model) -> Vec<String> {
    let zones = model.rows();
    let titles = COLUMNS.iter().map(|(title, ..)| (*title).to_owned());
    let mut rows = vec![iter::once("zone".to_owned()).chain(titles).collect()];
    rows.extend(zones.iter().map(|zone| {
        let texts = COLUMNS.iter().map(|(_, _, text)| text(zone));
        let texts = texts.map(|text| text.unwrap_or("-".to_owned()));
        iter::once(zone.name.to_string()).chain(texts).collect()
    }));
    let mut lines = columns(&rows, &[0, 1]);
    for zone in zones {
        let told = overridden::lines(&zone.now).into_iter();
        lines.extend(told.map(|text| format!("{}: {text}", zone.name)));
    }
    lines
}

/// The deepest keys; nothing if none waits.
fn deepest(model: &Model) -> Vec<String> {
    let mut rows = vec![heading("zone, depth, oldest, plan, key")];
    rows.extend(model.deepest(Sort::Depth).into_iter().map(|key| {
        vec![
            key.zone.to_string(),
            key.depth.to_string(),
            wait(key.oldest_wait),
            plan(key.plan.as_ref()),
            key.key.to_string(),
        ]
    }));
    keys(rows)
}

/// The titles of columns.
fn heading(titles: &str) -> Vec<String> {
    titles.split(", ").map(str::to_owned).collect()
}

/// The plan of a key; empty without one.
fn plan(plan: Option<&Plain>) -> String {
    plan.map(Plain::to_string).unwrap_or_default()
}

/// A table of keys below an empty line; nothing without a key. The fourth column is left out where
/// no key has a plan.
fn keys(mut rows: Vec<Vec<String>>) -> Vec<String> {
    if rows.len() == 1 {
        return Vec::new();
    }
    if rows.iter().skip(1).all(|row| row[3].is_empty()) {
        for row in &mut rows {
            row.remove(3);
        }
    }
    let mut lines = vec![String::new()];
    lines.extend(columns(&rows, &[0, 3, 4]));
    lines
}

fn servers(model: &Model) -> Vec<String> {
    let mut rows = vec![heading(
        "origin, server, state, in flight, answered, failed, 5xx, p99",
    )];
    for origin in model.origins() {
        rows.extend(origin.servers.iter().map(|server| {
            let errors = server.codes.get(&Plain::from("5xx"));
            let p99 = server.latency.p99;
            vec![
                origin.name.to_string(),
                server.url.to_string(),
                server.availability().to_owned(),
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
    let titles = "gate, rate, in flight, waiting, p99, rej/s, backs off";
    let mut rows = vec![heading(titles)];
    let mut deepest = vec![heading("gate, waiting, part, plan, key")];
    let mut overridden = Vec::new();
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
        overridden.extend(gate.overridden().map(|it| {
            let told = overridden::of_gate(it);
            format!("{}: {told}", origin.name)
        }));
        deepest.extend(gate.keys().iter().map(|key| {
            vec![
                origin.name.to_string(),
                key.queue_depth.to_string(),
                format!("{:.0}%", key.share * 100.0),
                plan(key.plan.as_ref()),
                key.key.to_string(),
            ]
        }));
    }
    if rows.len() == 1 {
        return Vec::new();
    }
    let mut lines = vec![String::new()];
    lines.extend(columns(&rows, &[0, 1, 6]));
    lines.extend(overridden);
    lines.extend(keys(deepest));
    lines
}

/// What this gateway has of places that several share; nothing if they share none.
fn borrowed(model: &Model) -> Vec<String> {
    let titles = "places, of, used here, held here, lent, free, withheld, gateways";
    let mut rows = vec![heading(titles)];
    let mut alone = Vec::new();
    for origin in model.origins() {
        let Some(it) = &origin.places else {
            continue;
        };
        let numbers = [
            it.of,
            it.in_use,
            it.held,
            it.lent,
            it.free,
            it.withheld,
            it.gateways,
        ];
        let numbers = numbers.iter().map(u64::to_string);
        rows.push(iter::once(origin.name.to_string()).chain(numbers).collect());
        alone.extend(places::why_alone(it).map(|why| format!("{}: {why}", origin.name)));
    }
    if rows.len() == 1 {
        return Vec::new();
    }
    let mut lines = vec![String::new()];
    lines.extend(columns(&rows, &[0]));
    lines.extend(alone);
    lines
}

/// The waiting rooms of origins; nothing without one.
fn rooms(model: &Model) -> Vec<String> {
    let titles = "room, waiting, called, inside, wait, pace, came, lost, state";
    let mut rows = vec![heading(titles)];
    for origin in model.origins() {
        let Some(of) = model.room(origin) else {
            continue;
        };
        rows.push(vec![
            origin.name.to_string(),
            of.room.waiting.to_string(),
            of.room.called.to_string(),
            room::inside(&of.room),
            of.room.wait.map_or("-".to_owned(), wait),
            room::pace(&of.room).unwrap_or("-".to_owned()),
            of.came_lately.to_string(),
            of.lost_lately.to_string(),
            room::special(&of.room).unwrap_or("open".to_owned()),
        ]);
    }
    if rows.len() == 1 {
        return Vec::new();
    }
    let mut lines = vec![String::new()];
    lines.extend(columns(&rows, &[0, 8]));
    lines
}

/// What the requests of each origin share, and what is kept; nothing if no route collapses.
fn shares(model: &Model) -> Vec<String> {
    let titles = "shared, asked/s, sent/s, share, stale/s, wait p99";
    let mut rows = vec![heading(titles)];
    for origin in model.origins() {
        let Some(now) = model.shared(origin) else {
            continue;
        };
        rows.push(vec![
            origin.name.to_string(),
            shared::pace(now.asked),
            shared::pace(now.sent),
            shared::share(&now).unwrap_or("-".to_owned()),
            shared::pace(now.stale),
            now.wait_p99.map_or("-".to_owned(), wait),
        ]);
    }
    if rows.len() == 1 {
        return Vec::new();
    }
    let mut lines = vec![String::new()];
    lines.extend(columns(&rows, &[0]));
    lines.extend(model.shared_answers().map(shared::kept));
    lines
}
