//! Formats responses of the admin port as text: the file, the headline, and a table for each noun.
//!
//! A table is left out if it has no rows. `sample` is the JSON of the last second. `cells` says how
//! titles and names of fields are written.

use std::iter;

use config::AdminAddress;
use gateway::status::Plain;
use serde_json::Value;

use super::State;
use super::cells::{
    cells, join_parts, placeholder, show, show_seconds, show_time, table, time_of_day,
};
use crate::admin_client::list;
use crate::display::percent;

/// Maximum number of keys that are shown for each gate.
const MAX_KEYS: usize = 5;

/// Formats the state as text that ends with a line feed.
pub(super) fn text(address: &AdminAddress, state: &State) -> String {
    let (config, sample) = (&state.config, &state.sample);
    let stopping = match sample["stopping"] {
        Value::Bool(true) => ", stopping",
        _ => "",
    };
    let version = show(&config["version"]);
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
    lines.extend(collapsed(state));
    lines.extend(longest_queues(state));
    lines.join("\n") + "\n"
}

/// Formats the state of the configuration file: loaded, or broken with the first problem.
fn file(config: &Value) -> String {
    let file = show(&config["file"]);
    let error = &config["error"];
    if error.is_null() {
        return format!("{file}: ok, loaded {}", show_time(&config["loaded_at"]));
    }
    let mut text = format!("{file}: broken since {}", show_time(&error["since"]));
    if let [first, more @ ..] = list(&error["problems"]) {
        if first["file"].is_string() {
            text += &format!(", {}", show(&first["file"]));
        }
        if let Some(line) = first["line"].as_u64() {
            text += &format!(", line {line}");
        }
        text += &format!(": {}", show(&first["message"]));
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
    if let Some(since) = headline["since"].as_f64().and_then(time_of_day)
        && let Some(title) = lines.first_mut()
    {
        *title += &format!(" (since {since})");
    }
    lines
}

/// Formats the state of the store (Redis); `None` if the gateway has none.
fn store(store: &Value) -> Option<String> {
    let is_up = store["up"].as_bool()?;
    let counts = store["operations"].as_object().into_iter().flatten();
    let state = if is_up {
        "up".to_owned()
    } else {
        let outage = show_seconds(&store["out_for"]);
        format!("OUT for {outage}: {}", show(&store["reason"]))
    };
    let counts = counts.map(|(result, count)| format!("{count} {}/s", Plain::new(result)));
    let parts: Vec<String> = iter::once(state).chain(counts).collect();
    Some(format!("store {}", parts.join(", ")))
}

/// Formats the queues and rates of the zones.
fn zones(state: &State) -> Vec<String> {
    let rows = list(&state.zones).iter().map(|zone| {
        let second = find_named(&state.sample["zones"], &zone["name"]);
        let counts = ["passed", "delayed", "dry_run"];
        let counts = counts.map(|name| second[name].as_u64().unwrap_or(0));
        let overridden_keys = second["overridden_keys"].as_u64().filter(|keys| *keys > 0);
        let keys = overridden_keys.map(|keys| format!("keys: {keys}"));
        let mut row = cells(zone, "name rate");
        row.push(counts.iter().sum::<u64>().to_string());
        row.extend(cells(
            second,
            "depth depth_max oldest_wait/s wait_p95/s rejected keys",
        ));
        row.push(join_parts([show_override(&second["override"]), keys]));
        row
    });
    let titles = "<zone, <rate, out/s, depth, deepest, oldest, p95, rej/s, keys, <override";
    table(titles, rows)
}

/// Formats the servers of the origins.
fn servers(state: &State) -> Vec<String> {
    let rows = list(&state.origins).iter().flat_map(|origin| {
        list(&origin["servers"]).iter().map(|server| {
            let mut row = cells(origin, "name");
            row.extend(cells(server, "url state in_flight answered failed"));
            row.push(server["codes"]["5xx"].as_u64().unwrap_or(0).to_string());
            row.push(show_seconds(&server["latency"]["p99"]));
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
        return placeholder();
    }
    let out = &server["out"];
    let since = || format!("by {} since {}", show(&out["by"]), show_time(&out["since"]));
    let (failure, check) = (&server["last_failure"], &server["last_check"]);
    let has_failed_check = check["healthy"] == false;
    let event = |event: &Value| {
        let (text, instant) = (show(&event["text"]), show_time(&event["at"]));
        format!("{text} at {instant}")
    };
    join_parts([
        out.is_object().then(since),
        failure.is_object().then(|| event(failure)),
        has_failed_check.then(|| format!("check: {}", event(check))),
    ])
}

/// Formats the gates: the limits in front of the origins.
fn gates(state: &State) -> Vec<String> {
    let rows = origins_with(state, "gate").map(|(origin, gate)| {
        let sample = &find_named(&state.sample["origins"], &origin["name"])["gate"];
        let in_flight = show(&origin["in_flight"]);
        let in_flight = match &gate["max_in_flight"]["now"] {
            Value::Null => in_flight,
            permits => format!("{in_flight} of {permits}"),
        };
        let rate = &gate["rate"];
        let rate = match show(&rate["now"]) {
            now if rate["now"] == rate["file"] => now,
            now => format!("{now} of {}", show(&rate["file"])),
        };
        let rejected = sample["rejected"].as_object().into_iter().flatten();
        let rejected = rejected.filter_map(|(_, count)| count.as_u64());
        let (outage, backoff) = (&gate["outage"], &gate["backing_off"]);
        let states = [
            outage.is_object().then(|| {
                let (lasts, hold) = (show_seconds(&outage["lasts"]), show(&outage["hold"]));
                format!("down for {lasts}, requests wait up to {hold}")
            }),
            backoff.is_object().then(|| {
                let (reason, text) = (show(&backoff["reason"]), show(&backoff["text"]));
                format!("backs off: {reason}, {text}")
            }),
            show_override(&gate["override"]),
        ];
        vec![
            show(&origin["name"]),
            rate,
            in_flight,
            show(&gate["queue_depth"]),
            show_seconds(&sample["wait_p99"]),
            rejected.sum::<u64>().to_string(),
            join_parts(states),
        ]
    });
    table("<gate, <rate, in flight, waiting, p99, rej/s, <state", rows)
}

/// Formats the permits of origins that gateways share. A permit lets one request be at the origin.
fn permits(state: &State) -> Vec<String> {
    let rows = origins_with(state, "permits").map(|(origin, permits)| {
        let fields = "of in_use held leased free withheld gateways reason";
        let counts = cells(permits, fields);
        [cells(origin, "name"), counts].concat()
    });
    let titles = "<permits, of, used here, held here, leased, free, withheld, gateways, <reason";
    table(titles, rows)
}

/// Formats the waiting rooms of the origins.
fn rooms(state: &State) -> Vec<String> {
    let rows = origins_with(state, "room").map(|(origin, room)| {
        let inside = show(&room["inside"]);
        let opens = || format!("opens {}", show_time(&room["opens"]));
        let is_opening = room["open"] == false && room["opens"].is_string();
        let state = show_override(&room["override"]).or_else(|| is_opening.then(opens));
        let pace = room["pace"].as_f64();
        vec![
            show(&origin["name"]),
            show(&room["waiting"]),
            show(&room["called"]),
            match &room["sessions"]["now"] {
                Value::Null => inside,
                sessions => format!("{inside} of {sessions}"),
            },
            show_seconds(&room["wait"]),
            pace.map_or_else(placeholder, |pace| format!("{pace:.2}/s")),
            state.unwrap_or_else(|| "open".to_owned()),
        ]
    });
    table("<room, waiting, called, inside, wait, pace, <state", rows)
}

/// Formats counts since the start for origins that collapse requests.
///
/// Equal requests at the same time share one answer, so fewer are sent than received.
fn collapsed(state: &State) -> Vec<String> {
    let rows = origins_with(state, "shared").map(|(origin, counts)| {
        let share = counts["share"].as_f64().map_or_else(placeholder, percent);
        [
            cells(origin, "name"),
            cells(counts, "received sent"),
            vec![share],
        ]
        .concat()
    });
    table("<shared, received, sent, share", rows)
}

/// Formats the keys with the longest queues, of zones and of gates.
fn longest_queues(state: &State) -> Vec<String> {
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
            let mut row = vec![format!("gate of {}", show(&origin["name"]))];
            row.extend(cells(key, "queue_depth oldest_wait/s plan key"));
            row
        })
    });
    let titles = "<waiting in, depth, oldest, <plan, <key";
    table(titles, of_zones.chain(of_gates))
}

/// Returns the origins that have a field of this name, each with the field.
fn origins_with<'a>(
    state: &'a State,
    name: &'a str,
) -> impl Iterator<Item = (&'a Value, &'a Value)> {
    let origins = list(&state.origins).iter();
    let origins = origins.map(move |origin| (origin, &origin[name]));
    origins.filter(|(_, field)| !field.is_null())
}

/// Formats what an override changes, until when, and who set it; `None` without an override.
fn show_override(value: &Value) -> Option<String> {
    let fields = value.as_object()?;
    let field = |name: &str| fields.get(name).filter(|field| !field.is_null());
    let dry_run = |on: &Value| if *on == true { "dry run" } else { "enforced" };
    let parts = [
        field("pause").and_then(|on| (*on == true).then(|| "paused".to_owned())),
        field("rate").map(show),
        field("max_in_flight").map(|permits| format!("{permits} permits")),
        field("dry_run").map(|on| dry_run(on).to_owned()),
        field("sessions").map(|sessions| format!("{sessions} sessions")),
        field("admit").map(|rate| format!("admit {}", show(rate))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let (until, by) = (show_time(&value["until"]), show(&value["by"]));
    Some(format!("{} until {until}, by {by}", parts.join(", ")))
}

/// Returns the entry of a list that has this name; null if there is none.
fn find_named<'a>(values: &'a Value, name: &Value) -> &'a Value {
    let mut values = list(values).iter();
    let found = values.find(|entry| entry["name"] == *name);
    found.unwrap_or(&Value::Null)
}
