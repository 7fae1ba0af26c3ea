//! Formats responses of the admin port as tables.

use std::iter;

use config::AdminAddress;
use gateway::status::Plain;
use jiff::Timestamp;
use limit::to_whole;
use serde_json::Value;

use super::State;
use crate::shown::{list, percent};

/// Number of keys shown for each gate.
const MAX_KEYS: usize = 5;

/// Formats the state as text that ends with a line feed.
pub(super) fn text(address: &AdminAddress, state: &State) -> String {
    let (config, sample) = (&state.config, &state.sample);
    let stopping = match sample["stopping"] {
        Value::Bool(true) => ", stopping",
        _ => "",
    };
    let version = shown(&config["version"]);
    let mut lines = vec![
        format!("drip {version} at {address}{stopping}"),
        file(config),
    ];
    lines.extend(headline(&sample["headline"]));
    lines.extend(store(&sample["store"]));
    lines.extend(zones(state));
    lines.extend(servers(state));
    lines.extend(gates(state));
    lines.extend(permits(state));
    lines.extend(rooms(state));
    lines.extend(shared(state));
    lines.extend(keys(state));
    lines.join("\n") + "\n"
}

/// Formats the state of the file.
fn file(config: &Value) -> String {
    let file = shown(&config["file"]);
    let error = &config["error"];
    if error.is_null() {
        return format!("{file}: ok, loaded {}", moment(&config["loaded_at"]));
    }
    let mut text = format!("{file}: broken since {}", moment(&error["since"]));
    if let [first, more @ ..] = list(&error["problems"]) {
        if first["file"].is_string() {
            text += &format!(", {}", shown(&first["file"]));
        }
        if let Some(line) = first["line"].as_u64() {
            text += &format!(", line {line}");
        }
        text += &format!(": {}", shown(&first["message"]));
        if !more.is_empty() {
            text += &format!(" (and {} more)", more.len());
        }
    }
    text
}

/// Formats the title, evidence and remedy of a headline, as far as they exist.
fn headline(headline: &Value) -> Vec<String> {
    let texts = ["title", "evidence", "remedy"].map(|name| headline[name].as_str());
    let texts = texts.into_iter().flatten().filter(|text| !text.is_empty());
    let mut lines: Vec<String> = texts.map(|text| Plain::new(text).to_string()).collect();
    if let Some(since) = headline["since"].as_f64().and_then(clock)
        && let Some(title) = lines.first_mut()
    {
        *title += &format!(" (since {since})");
    }
    lines
}

/// Formats the state of the store, if zones or origins share one.
fn store(store: &Value) -> Option<String> {
    let is_up = store["up"].as_bool()?;
    let counts = store["operations"].as_object().into_iter().flatten();
    let state = if is_up {
        "up".to_owned()
    } else {
        let span = seconds(&store["out_for"]);
        format!("OUT for {span}: {}", shown(&store["reason"]))
    };
    let counts = counts.map(|(result, count)| format!("{count} {}/s", Plain::new(result)));
    let parts: Vec<String> = iter::once(state).chain(counts).collect();
    Some(format!("store {}", parts.join(", ")))
}

fn zones(state: &State) -> Vec<String> {
    let rows = list(&state.zones).iter().map(|zone| {
        let now = find_named(&state.sample["zones"], &zone["name"]);
        let out = ["passed", "delayed", "dry_run"].map(|name| now[name].as_u64().unwrap_or(0));
        let keys = now["overridden_keys"].as_u64().filter(|keys| *keys > 0);
        let keys = keys.map(|keys| format!("keys: {keys}"));
        let mut row = cells(zone, "name rate");
        row.push(out.iter().sum::<u64>().to_string());
        row.extend(cells(
            now,
            "depth depth_max oldest_wait/s wait_p95/s rejected keys",
        ));
        row.push(join_parts([show_override(&now["override"]), keys]));
        row
    });
    let titles = "<zone, <rate, out/s, depth, deepest, oldest, p95, rej/s, keys, <override";
    table(titles, rows)
}

fn servers(state: &State) -> Vec<String> {
    let rows = list(&state.origins).iter().flat_map(|origin| {
        list(&origin["servers"]).iter().map(|server| {
            let mut row = cells(origin, "name");
            row.extend(cells(server, "url state in_flight answered failed"));
            row.push(server["codes"]["5xx"].as_u64().unwrap_or(0).to_string());
            row.push(seconds(&server["latency"]["p99"]));
            row.push(failure_reason(server));
            row
        })
    });
    let titles = "<origin, <server, <state, in flight, answered, failed, 5xx, p99, <reason";
    table(titles, rows)
}

/// Formats the reason why a server is out or failing.
fn failure_reason(server: &Value) -> String {
    if server["state"] == "in_use" {
        return none();
    }
    let out = &server["out"];
    let since = || format!("by {} since {}", shown(&out["by"]), moment(&out["since"]));
    let (failure, check) = (&server["last_failure"], &server["last_check"]);
    let has_failed_check = check["healthy"] == false;
    let event = |it: &Value| format!("{} at {}", shown(&it["text"]), moment(&it["at"]));
    join_parts([
        out.is_object().then(since),
        failure.is_object().then(|| event(failure)),
        has_failed_check.then(|| format!("check: {}", event(check))),
    ])
}

fn gates(state: &State) -> Vec<String> {
    let rows = origins_with(state, "gate").map(|(origin, gate)| {
        let now = &find_named(&state.sample["origins"], &origin["name"])["gate"];
        let in_flight = shown(&origin["in_flight"]);
        let in_flight = match &gate["max_in_flight"]["now"] {
            Value::Null => in_flight,
            permits => format!("{in_flight} of {permits}"),
        };
        let rate = &gate["rate"];
        let rate = match shown(&rate["now"]) {
            now if rate["now"] == rate["file"] => now,
            now => format!("{now} of {}", shown(&rate["file"])),
        };
        let rejected = now["rejected"].as_object().into_iter().flatten();
        let rejected = rejected.filter_map(|(_, count)| count.as_u64());
        let (outage, backoff) = (&gate["outage"], &gate["backing_off"]);
        let states = [
            outage.is_object().then(|| {
                let (lasts, hold) = (seconds(&outage["lasts"]), shown(&outage["hold"]));
                format!("down for {lasts}, requests wait up to {hold}")
            }),
            backoff.is_object().then(|| {
                let (reason, text) = (shown(&backoff["reason"]), shown(&backoff["text"]));
                format!("backs off: {reason}, {text}")
            }),
            show_override(&gate["override"]),
        ];
        vec![
            shown(&origin["name"]),
            rate,
            in_flight,
            shown(&gate["queue_depth"]),
            seconds(&now["wait_p99"]),
            rejected.sum::<u64>().to_string(),
            join_parts(states),
        ]
    });
    table("<gate, <rate, in flight, waiting, p99, rej/s, <state", rows)
}

/// Formats the permits of origins that gateways share.
fn permits(state: &State) -> Vec<String> {
    let rows = origins_with(state, "permits").map(|(origin, it)| {
        let counts = cells(it, "of in_use held leased free withheld gateways reason");
        [cells(origin, "name"), counts].concat()
    });
    let titles = "<permits, of, used here, held here, leased, free, withheld, gateways, <reason";
    table(titles, rows)
}

fn rooms(state: &State) -> Vec<String> {
    let rows = origins_with(state, "room").map(|(origin, room)| {
        let inside = shown(&room["inside"]);
        let opens = || format!("opens {}", moment(&room["opens"]));
        let is_opening = room["open"] == false && room["opens"].is_string();
        let state = show_override(&room["override"]).or_else(|| is_opening.then(opens));
        let pace = room["pace"].as_f64();
        vec![
            shown(&origin["name"]),
            shown(&room["waiting"]),
            shown(&room["called"]),
            match &room["sessions"]["now"] {
                Value::Null => inside,
                sessions => format!("{inside} of {sessions}"),
            },
            seconds(&room["wait"]),
            pace.map_or_else(none, |pace| format!("{pace:.2}/s")),
            state.unwrap_or_else(|| "open".to_owned()),
        ]
    });
    table("<room, waiting, called, inside, wait, pace, <state", rows)
}

/// Formats counts of collapsed requests since the start.
fn shared(state: &State) -> Vec<String> {
    let rows = origins_with(state, "shared").map(|(origin, it)| {
        let share = it["share"].as_f64().map_or_else(none, percent);
        [
            cells(origin, "name"),
            cells(it, "received sent"),
            vec![share],
        ]
        .concat()
    });
    table("<shared, received, sent, share", rows)
}

/// Formats the keys with the longest queues, of zones and of gates.
fn keys(state: &State) -> Vec<String> {
    let deepest = list(&state.sample["deepest"]).iter();
    let deepest = deepest.filter(|key| key["depth"] != 0);
    let of_zones = deepest.map(|key| cells(key, "zone depth oldest_wait/s plan key"));
    let of_gates = origins_with(state, "gate").flat_map(|(origin, gate)| {
        // Without a share, all keys are in one queue.
        let keys = match gate["share"] {
            Value::Null => &[],
            _ => list(&gate["deepest"]),
        };
        keys.iter().take(MAX_KEYS).map(|key| {
            let mut row = vec![format!("gate of {}", shown(&origin["name"]))];
            row.extend(cells(key, "queue_depth oldest_wait/s plan key"));
            row
        })
    });
    let titles = "<waiting in, depth, oldest, <plan, <key";
    table(titles, of_zones.chain(of_gates))
}

/// Returns the origins that have a field of this name.
fn origins_with<'a>(
    state: &'a State,
    name: &'a str,
) -> impl Iterator<Item = (&'a Value, &'a Value)> {
    let origins = list(&state.origins).iter();
    let origins = origins.map(move |origin| (origin, &origin[name]));
    origins.filter(|(_, it)| !it.is_null())
}

/// Formats what an override changes, until when, and who set it.
fn show_override(value: &Value) -> Option<String> {
    let fields = value.as_object()?;
    let field = |name: &str| fields.get(name).filter(|field| !field.is_null());
    let dry_run = |on: &Value| if *on == true { "dry run" } else { "enforced" };
    let parts = [
        field("pause").and_then(|on| (*on == true).then(|| "paused".to_owned())),
        field("rate").map(shown),
        field("max_in_flight").map(|permits| format!("{permits} permits")),
        field("dry_run").map(|on| dry_run(on).to_owned()),
        field("sessions").map(|sessions| format!("{sessions} sessions")),
        field("admit").map(|rate| format!("admit {}", shown(rate))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let (until, by) = (moment(&value["until"]), shown(&value["by"]));
    Some(format!("{} until {until}, by {by}", parts.join(", ")))
}

/// Formats the fields of a value. A name with `/s` at its end is of a field in seconds.
fn cells(value: &Value, fields: &str) -> Vec<String> {
    let cell = |field: &str| match field.strip_suffix("/s") {
        Some(field) => seconds(&value[field]),
        None => shown(&value[field]),
    };
    fields.split(' ').map(cell).collect()
}

/// Joins the parts that exist, or returns a placeholder.
fn join_parts<const N: usize>(parts: [Option<String>; N]) -> String {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        none()
    } else {
        parts.join("; ")
    }
}

/// Formats aligned columns below an empty line. Returns nothing without rows.
///
/// A column with `<` before its title is aligned left, the others right.
fn table(titles: &str, rows: impl Iterator<Item = Vec<String>>) -> Vec<String> {
    let titles = titles.split(", ");
    let (is_left, titles): (Vec<bool>, Vec<String>) = titles
        .map(|title| (title.starts_with('<'), title.replace('<', "")))
        .unzip();
    let all: Vec<Vec<String>> = iter::once(titles).chain(rows).collect();
    if all.len() == 1 {
        return Vec::new();
    }
    let lengths = |column: usize| all.iter().map(move |row| row[column].chars().count());
    let widths = (0..is_left.len()).map(|column| lengths(column).max().unwrap_or(0));
    let widths: Vec<usize> = widths.collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).zip(&is_left);
        let cells = cells.map(|((text, &width), is_left)| {
            if *is_left {
                format!("{text:<width$}")
            } else {
                format!("{text:>width$}")
            }
        });
        let cells: Vec<String> = cells.collect();
        cells.join("  ").trim_end().to_owned()
    };
    iter::once(String::new())
        .chain(all.iter().map(line))
        .collect()
}

/// Returns the entry of a list that has this name; null if there is none.
fn find_named<'a>(values: &'a Value, name: &Value) -> &'a Value {
    let mut values = list(values).iter();
    let found = values.find(|it| it["name"] == *name);
    found.unwrap_or(&Value::Null)
}

/// Returns the placeholder for a missing value.
fn none() -> String {
    "-".to_owned()
}

/// Formats a value without characters that control a terminal.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => none(),
        Value::String(text) => Plain::new(text).to_string(),
        other => other.to_string(),
    }
}

/// Formats seconds with about three digits.
fn seconds(value: &Value) -> String {
    match value.as_f64() {
        None => none(),
        Some(s) if s < 10.0 => format!("{s:.2}s"),
        Some(s) if s < 100.0 => format!("{s:.1}s"),
        Some(s) => format!("{s:.0}s"),
    }
}

/// Formats a timestamp to the second. Returns a text that is not a timestamp unchanged.
fn moment(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    match text.parse::<Timestamp>() {
        Ok(time) => time.strftime("%F %T UTC").to_string(),
        Err(_) => shown(value),
    }
}

/// Formats the time of day of a Unix time in seconds.
fn clock(seconds: f64) -> Option<String> {
    let time = Timestamp::from_second(i64::try_from(to_whole(seconds)).ok()?).ok()?;
    Some(time.strftime("%T UTC").to_string())
}
