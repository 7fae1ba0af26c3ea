//! Formats responses of the admin port as tables.

use std::iter;

use config::AdminAddress;
use gateway::status::Plain;
use jiff::Timestamp;
use limit::to_whole;
use serde_json::Value;

use super::State;
use crate::shown::percent;

/// Number of keys shown for each gate.
const KEYS: usize = 5;

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
    let since = moment(&error["since"]);
    let problems = list(&error["problems"]);
    let Some(first) = problems.first() else {
        return format!("{file}: broken since {since}");
    };
    let position = [
        first["file"].as_str().map(|_| shown(&first["file"])),
        first["line"].as_u64().map(|line| format!("line {line}")),
    ];
    let position = position
        .into_iter()
        .flatten()
        .map(|part| format!(", {part}"));
    let (position, message) = (position.collect::<String>(), shown(&first["message"]));
    let text = format!("{file}: broken since {since}{position}: {message}");
    match problems.len() {
        1 => text,
        more => format!("{text} (and {} more)", more - 1),
    }
}

/// Formats the title, evidence and remedy of a headline, as far as they exist.
fn headline(headline: &Value) -> Vec<String> {
    let part = |name: &str| headline[name].as_str().filter(|text| !text.is_empty());
    let Some(title) = part("title") else {
        return Vec::new();
    };
    let since = headline["since"].as_f64().and_then(clock);
    let since = since.map_or(String::new(), |since| format!(" (since {since})"));
    let rest = [part("evidence"), part("remedy")].into_iter().flatten();
    iter::once(format!("{}{since}", Plain::new(title)))
        .chain(rest.map(|text| Plain::new(text).to_string()))
        .collect()
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
        let now = named(&state.sample["zones"], &zone["name"]);
        let out = ["passed", "delayed", "dry_run"].map(|name| now[name].as_u64().unwrap_or(0));
        let keys = now["overridden_keys"].as_u64().filter(|keys| *keys > 0);
        let keys = keys.map(|keys| format!("keys: {keys}"));
        let mut row = cells(zone, "name rate");
        row.push(out.iter().sum::<u64>().to_string());
        row.extend(cells(
            now,
            "depth depth_max oldest_wait/s wait_p95/s rejected keys",
        ));
        row.push(all_of([overridden(&now["override"]), keys]));
        row
    });
    let titles = "zone, rate, out/s, depth, deepest, oldest, p95, rej/s, keys, override";
    table(titles, &[0, 1, 9], rows)
}

fn servers(state: &State) -> Vec<String> {
    let rows = list(&state.origins).iter().flat_map(|origin| {
        list(&origin["servers"]).iter().map(|server| {
            let mut row = cells(origin, "name");
            row.extend(cells(server, "url state in_flight answered failed"));
            row.push(server["codes"]["5xx"].as_u64().unwrap_or(0).to_string());
            row.push(seconds(&server["latency"]["p99"]));
            row.push(trouble(server));
            row
        })
    });
    let titles = "origin, server, state, in flight, answered, failed, 5xx, p99, reason";
    table(titles, &[0, 1, 2, 8], rows)
}

/// Formats the reason why a server is out or failing.
fn trouble(server: &Value) -> String {
    if server["state"] == "in_use" {
        return none();
    }
    let out = &server["out"];
    let since = || format!("by {} since {}", shown(&out["by"]), moment(&out["since"]));
    let (failure, check) = (&server["last_failure"], &server["last_check"]);
    let is_failed = check["healthy"] == false;
    let event = |it: &Value| format!("{} at {}", shown(&it["text"]), moment(&it["at"]));
    all_of([
        out.is_object().then(since),
        failure.is_object().then(|| event(failure)),
        is_failed.then(|| format!("check: {}", event(check))),
    ])
}

fn gates(state: &State) -> Vec<String> {
    let rows = with(state, "gate").map(|(origin, gate)| {
        let now = &named(&state.sample["origins"], &origin["name"])["gate"];
        let in_flight = shown(&origin["in_flight"]);
        let in_flight = match &gate["max_in_flight"]["now"] {
            Value::Null => in_flight,
            most => format!("{in_flight} of {most}"),
        };
        let rate = &gate["rate"];
        let rate = match shown(&rate["now"]) {
            now if rate["now"] == rate["file"] => now,
            now => format!("{now} of {}", shown(&rate["file"])),
        };
        let rejected = now["rejected"].as_object().into_iter().flatten();
        let rejected = rejected.filter_map(|(_, count)| count.as_u64());
        let (outage, why) = (&gate["outage"], &gate["backing_off"]);
        let states = [
            outage.is_object().then(|| {
                let (lasts, hold) = (seconds(&outage["lasts"]), shown(&outage["hold"]));
                format!("down for {lasts}, requests wait up to {hold}")
            }),
            why.is_object().then(|| {
                let why = format!("{}, {}", shown(&why["reason"]), shown(&why["text"]));
                format!("backs off: {why}")
            }),
            overridden(&gate["override"]),
        ];
        vec![
            shown(&origin["name"]),
            rate,
            in_flight,
            shown(&gate["queue_depth"]),
            seconds(&now["wait_p99"]),
            rejected.sum::<u64>().to_string(),
            all_of(states),
        ]
    });
    let titles = "gate, rate, in flight, waiting, p99, rej/s, state";
    table(titles, &[0, 1, 6], rows)
}

/// Formats the permits of origins that gateways share.
fn permits(state: &State) -> Vec<String> {
    let rows = with(state, "permits").map(|(origin, it)| {
        let counts = cells(it, "of in_use held leased free withheld gateways reason");
        [cells(origin, "name"), counts].concat()
    });
    let titles = "permits, of, used here, held here, leased, free, withheld, gateways, reason";
    table(titles, &[0, 8], rows)
}

fn rooms(state: &State) -> Vec<String> {
    let rows = with(state, "room").map(|(origin, room)| {
        let inside = shown(&room["inside"]);
        let opens = || format!("opens {}", moment(&room["opens"]));
        let is_opening = room["open"] == false && room["opens"].is_string();
        let state = overridden(&room["override"]).or_else(|| is_opening.then(opens));
        let pace = room["pace"].as_f64();
        vec![
            shown(&origin["name"]),
            shown(&room["waiting"]),
            shown(&room["called"]),
            match &room["sessions"]["now"] {
                Value::Null => inside,
                most => format!("{inside} of {most}"),
            },
            seconds(&room["wait"]),
            pace.map_or_else(none, |pace| format!("{pace:.2}/s")),
            state.unwrap_or_else(|| "open".to_owned()),
        ]
    });
    let titles = "room, waiting, called, inside, wait, pace, state";
    table(titles, &[0, 6], rows)
}

/// Formats counts of collapsed requests since the start.
fn shared(state: &State) -> Vec<String> {
    let rows = with(state, "shared").map(|(origin, it)| {
        let share = it["share"].as_f64().map_or_else(none, percent);
        [
            cells(origin, "name"),
            cells(it, "received sent"),
            vec![share],
        ]
        .concat()
    });
    table("shared, received, sent, share", &[0], rows)
}

/// Formats the keys with the longest queues, of zones and of gates.
fn keys(state: &State) -> Vec<String> {
    let deepest = list(&state.sample["deepest"]).iter();
    let deepest = deepest.filter(|key| key["depth"] != 0);
    let of_zones = deepest.map(|key| cells(key, "zone depth oldest_wait/s plan key"));
    let of_gates = with(state, "gate").flat_map(|(origin, gate)| {
        // Without a share, all keys are in one queue.
        let keys = match gate["share"] {
            Value::Null => &[],
            _ => list(&gate["deepest"]),
        };
        keys.iter().take(KEYS).map(|key| {
            let mut row = vec![format!("gate of {}", shown(&origin["name"]))];
            row.extend(cells(key, "queue_depth oldest_wait/s plan key"));
            row
        })
    });
    let titles = "waiting in, depth, oldest, plan, key";
    table(titles, &[0, 3, 4], of_zones.chain(of_gates))
}

/// Returns the origins that have a field of this name.
fn with<'a>(state: &'a State, name: &'a str) -> impl Iterator<Item = (&'a Value, &'a Value)> {
    let origins = list(&state.origins).iter();
    let origins = origins.map(move |origin| (origin, &origin[name]));
    origins.filter(|(_, it)| !it.is_null())
}

/// Formats what an override changes, until when, and who set it.
fn overridden(it: &Value) -> Option<String> {
    let fields = it.as_object()?;
    let value = |name: &str| fields.get(name).filter(|value| !value.is_null());
    let dry_run = |on: &Value| if *on == true { "dry run" } else { "enforced" };
    let parts = [
        value("pause").and_then(|on| (*on == true).then(|| "paused".to_owned())),
        value("rate").map(shown),
        value("max_in_flight").map(|most| format!("{most} permits")),
        value("dry_run").map(|on| dry_run(on).to_owned()),
        value("sessions").map(|most| format!("{most} sessions")),
        value("admit").map(|rate| format!("admit {}", shown(rate))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let (until, by) = (moment(&it["until"]), shown(&it["by"]));
    Some(format!("{} until {until}, by {by}", parts.join(", ")))
}

/// Formats the fields of a value. Fields that end in `/s` are in seconds.
fn cells(value: &Value, fields: &str) -> Vec<String> {
    let cell = |field: &str| match field.strip_suffix("/s") {
        Some(field) => seconds(&value[field]),
        None => shown(&value[field]),
    };
    fields.split(' ').map(cell).collect()
}

/// Joins the parts that exist, or returns a placeholder.
fn all_of<const N: usize>(parts: [Option<String>; N]) -> String {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        none()
    } else {
        parts.join("; ")
    }
}

/// Formats aligned columns below an empty line. Returns nothing without rows.
///
/// `left`: columns of texts, which are aligned left.
fn table(titles: &str, left: &[usize], rows: impl Iterator<Item = Vec<String>>) -> Vec<String> {
    let mut all = vec![titles.split(", ").map(str::to_owned).collect()];
    all.extend(rows);
    if all.len() == 1 {
        return Vec::new();
    }
    let lengths = |at: usize| all.iter().map(move |row| row[at].chars().count());
    let widths = (0..all[0].len()).map(|at| lengths(at).max().unwrap_or(0));
    let widths: Vec<usize> = widths.collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(at, (text, &width))| {
            if left.contains(&at) {
                format!("{text:<width$}")
            } else {
                format!("{text:>width$}")
            }
        });
        let cells: Vec<String> = cells.collect();
        cells.join("  ").trim_end().to_owned()
    };
    let lines = all.iter().map(line);
    iter::once(String::new()).chain(lines).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns the entry of a list that has this name; null if there is none.
fn named<'a>(values: &'a Value, name: &Value) -> &'a Value {
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
