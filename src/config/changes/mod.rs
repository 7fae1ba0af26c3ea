//! Differences between two settings, as texts for people.
//!
//! Plans that lost keys are in `lost_keys`.

mod lost_keys;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use toml::{Table, Value};

pub use self::lost_keys::{LostKeys, lost_keys};
use super::printable::put_printable;
use super::table_settings::TableSettings;
use super::{Plan, Room, RoomSecret, Settings, Words, Zone, show};

/// Maximum length of a shown value, in characters.
const MAX_CHARACTERS: usize = 80;

/// Suffix of a text about a setting that takes effect only after a restart.
pub(super) const NEEDS_RESTART: &str = " (needs a restart)";

/// Lists the changes of a reload from `old` to `new`: one text for each changed setting.
///
/// Examples: `zones.per_client.rate 10r/s -> 20r/s`, `origins.app.servers + http://10.0.0.2` and
/// `zones.new added`. Routes and limits are named in brackets, because their indexes change:
/// `routes[/login].limits[per_client].burst 20 -> 40`. A setting that differs from `started_with`
/// and takes effect only at a restart is marked as such. No text shows a password.
pub fn changes(old: &Settings, new: &Settings, started_with: &Settings) -> Vec<String> {
    let mut found = Vec::new();
    // No key of a zone is shown if the zone masks its keys in the old or in the new settings.
    let masked = old.zones.iter().chain(&new.zones);
    let masked = masked.filter(|zone| zone.mask_keys);
    let masked: HashSet<&str> = masked.map(|zone| zone.name.as_str()).collect();
    let (before, after) = (shown(old, &masked), shown(new, &masked));
    compare_tables("", &before, &after, &mut found);
    // Compared as texts, which have no password.
    let is_shown_same = old.redis.url.to_string() == new.redis.url.to_string();
    if old.redis.url != new.redis.url && is_shown_same {
        found.push("redis.url has another password".to_owned());
    }
    for zone in &new.zones {
        if let Some(known) = old.zones.iter().find(|known| known.name == zone.name) {
            compare_plan_files(known, zone, &mut found);
        }
    }
    compare_files(old, new, &mut found);
    compare_rooms(old, new, &mut found);
    let waiting = new.needing_restart(started_with);
    for text in &mut found {
        let is_of = |setting: &String| {
            let rest = text.strip_prefix(setting.as_str());
            rest.is_some_and(|rest| rest.starts_with([' ', '.', '[']))
        };
        if waiting.iter().any(is_of) {
            text.push_str(NEEDS_RESTART);
        }
    }
    found
}

impl Settings {
    /// Returns the names of the changed fields that take effect only after a restart.
    ///
    /// They are compared with `started_with`.
    pub fn needing_restart(&self, started_with: &Self) -> Vec<String> {
        let (server, log) = (&started_with.server, &started_with.log);
        let server = self.server.fixed_changes(self, server, started_with);
        let log = self.log.fixed_changes(self, log, started_with);
        let server = server.iter().map(|name| format!("server.{name}"));
        let log = log.iter().map(|name| format!("log.{name}"));
        server.chain(log).collect()
    }
}

/// Returns at most `most` texts. If some are left out, the last text gives their number.
pub(super) fn bounded(mut texts: Vec<String>, most: usize) -> Vec<String> {
    if texts.len() > most {
        let more = texts.len() - (most - 1);
        texts.truncate(most - 1);
        texts.push(format!("and {more} more"));
    }
    texts
}

/// Returns settings as TOML, with all defaults, without secrets and keys of `masked` zones.
fn shown(settings: &Settings, masked: &HashSet<&str>) -> Table {
    let is_masked = |zone: &Zone| masked.contains(zone.name.as_str());
    // The output of `show` can always be read back: a test checks this.
    show(&settings.without_secrets_and_keys(is_masked))
        .parse()
        .unwrap_or_default()
}

fn compare_tables(path: &str, old: &Table, new: &Table, found: &mut Vec<String>) {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for name in names {
        let path = match path {
            "" => name.clone(),
            _ => format!("{path}.{name}"),
        };
        match (old.get(name), new.get(name)) {
            (Some(Value::Table(_)), None) => found.push(format!("{path} removed")),
            (None, Some(Value::Table(_))) => found.push(format!("{path} added")),
            (old, new) => compare(&path, old, new, found),
        }
    }
}

fn compare(path: &str, old: Option<&Value>, new: Option<&Value>, found: &mut Vec<String>) {
    match (old, new) {
        _ if old == new => {}
        (Some(Value::Table(old)), Some(Value::Table(new))) => {
            compare_tables(path, old, new, found);
        }
        (Some(Value::String(old)), Some(Value::Table(new))) if new.contains_key("url") => {
            compare_tables(path, &server_table(old), new, found);
        }
        (Some(Value::Table(old)), Some(Value::String(new))) if old.contains_key("url") => {
            compare_tables(path, old, &server_table(new), found);
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => {
            compare_lists(path, old, new, found);
        }
        _ => {
            let text = |value: Option<&Value>| value.map_or_else(|| "none".to_owned(), text);
            found.push(format!("{path} {} -> {}", text(old), text(new)));
        }
    }
}

/// Returns the table form of a server that is written as its URL only.
fn server_table(url: &str) -> Table {
    let fields = [
        ("url", Value::from(url)),
        ("weight", Value::from(1)),
        ("backup", Value::from(false)),
        ("max_in_flight", Value::from(0)),
    ];
    Table::from_iter(fields.map(|(name, value)| (name.to_owned(), value)))
}

/// Compares lists by the names of their items: an index means nothing once others have moved.
fn compare_lists(path: &str, old: &[Value], new: &[Value], found: &mut Vec<String>) {
    let by_name = |list: &[Value]| -> BTreeMap<String, usize> {
        let names = list.iter().map(name_of_item);
        names.zip(0..).collect()
    };
    let (old_indices, new_indices) = (by_name(old), by_name(new));
    let count = found.len();
    for item in old {
        let item_name = name_of_item(item);
        if !new_indices.contains_key(&item_name) {
            found.push(match item {
                Value::Table(_) => format!("{path}[{item_name}] removed"),
                _ => format!("{path} - {}", cut(&item_name)),
            });
        }
    }
    let mut kept = Vec::new();
    for item in new {
        let item_name = name_of_item(item);
        match (old_indices.get(&item_name), item) {
            (None, Value::Table(_)) => found.push(format!("{path}[{item_name}] added")),
            (None, _) => found.push(format!("{path} + {}", cut(&item_name))),
            (Some(index), _) => {
                kept.push(*index);
                let path = format!("{path}[{item_name}]");
                compare(&path, old.get(*index), Some(item), found);
            }
        }
    }
    if !kept.is_sorted() || found.len() == count {
        found.push(format!("{path} in another order"));
    }
}

/// Returns the name of a list item.
///
/// A route is named by its conditions, a limit by its zone, a listener by its address, a server by
/// its URL, and any other value by its text.
fn name_of_item(item: &Value) -> String {
    let Value::Table(table) = item else {
        return plain(item);
    };
    let mut names = ["zone", "address", "url"].iter();
    if let Some(name) = names.find_map(|it| table.get(*it)) {
        return plain(name);
    }
    let field = |name: &str| table.get(name).map(plain);
    let methods = table.get("methods").and_then(Value::as_array);
    let methods: Vec<String> = methods.into_iter().flatten().map(plain).collect();
    let parts = [
        Some(methods.join(",")).filter(|methods| !methods.is_empty()),
        field("host"),
        field("path"),
        field("listen").map(|listen| format!("listen={listen}")),
        field("match"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(" ")
}

fn text(value: &Value) -> String {
    cut(&plain(value))
}

/// Returns a value as TOML, but a text without its quotes.
fn plain(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    let mut plain = String::with_capacity(text.len());
    put_printable(&mut plain, text.chars());
    plain
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Compares keys that come from the files of plans. The text of the settings does not contain them.
fn compare_plan_files(old: &Zone, new: &Zone, found: &mut Vec<String>) {
    if old.plans == new.plans {
        return;
    }
    for (index, plan) in new.plans.iter().enumerate() {
        let Some(old_index) = old.plans.iter().position(|it| it.name == plan.name) else {
            continue;
        };
        let Some(old_plan) = old.plans.get(old_index) else {
            continue;
        };
        let inline: HashSet<&[u8]> = inline_keys(plan).chain(inline_keys(old_plan)).collect();
        // Counts the keys of plan `index` in `zone` that are not in plan `other_index` of `other`.
        let count_missing = |zone: &Zone, index: usize, other: &Zone, other_index: usize| {
            let keys = zone.plans.keys_of(index);
            let keys = keys.filter(|key| other.plans.index_of(key) != Some(other_index));
            keys.filter(|key| !inline.contains(key)).count()
        };
        let more = count_missing(new, index, old, old_index);
        let less = count_missing(old, old_index, new, index);
        let path = format!("zones.{}.plans.{}.file", new.name, plan.name);
        let file = plan.file_name().or_else(|| old_plan.file_name());
        let file = file.map_or(String::new(), |name| format!(" {}:", cut(&name)));
        for (count, word) in [(more, "more"), (less, "less")] {
            match count {
                0 => {}
                1 => found.push(format!("{path}{file} 1 key {word}")),
                _ => found.push(format!("{path}{file} {count} keys {word}")),
            }
        }
    }
}

/// Compares the contents of named files.
///
/// Files whose content becomes settings are left out: these are compared setting by setting.
fn compare_files(old: &Settings, new: &Settings, found: &mut Vec<String>) {
    let known = old.named.iter();
    let known = known.filter_map(|file| Some((&*file.path, file.digest?)));
    let known: HashMap<&Path, u64> = known.collect();
    let mut reported = HashSet::new();
    for file in &new.named {
        let (Some(digest), Some(before)) = (file.digest, known.get(&*file.path)) else {
            continue;
        };
        if digest == *before || !reported.insert((&file.path, file.kind.word())) {
            continue;
        }
        let name = file.path.file_name().filter(|_| !file.is_secret);
        let name = name.map_or(String::new(), |it| {
            format!(" {}", cut(&it.to_string_lossy()))
        });
        found.push(format!("{}{name} content changed", file.kind.word()));
    }
}

/// Returns the keys that are written in the gateway's file itself.
fn inline_keys(plan: &Plan) -> impl Iterator<Item = &[u8]> {
    plan.keys.iter().map(String::as_bytes)
}

/// Compares the secrets of rooms that exist in both settings.
fn compare_rooms(old: &Settings, new: &Settings, found: &mut Vec<String>) {
    // A route shows `room` only if its origin has one, and that change is already in the list.
    found.retain(|text| {
        let suffixes = [".room none -> true", ".room true -> none"];
        !(text.starts_with("routes[") && suffixes.iter().any(|it| text.ends_with(it)))
    });
    for origin in &new.origins {
        let mut known = old.origins.iter();
        let known = known.find(|known| known.name == origin.name);
        let known = known.and_then(|known| known.room.as_ref());
        let Some((before, after)) = known.zip(origin.room.as_ref()) else {
            continue;
        };
        if shown_secrets(before) == shown_secrets(after) && before.secret != after.secret {
            found.push(format!(
                "origins.{}.room.secret has another value",
                origin.name
            ));
        }
    }
}

/// Returns the secrets of a room as all outputs show them.
fn shown_secrets(room: &Room) -> Vec<RoomSecret> {
    room.secret.iter().map(RoomSecret::hidden).collect()
}
