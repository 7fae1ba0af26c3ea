//! Lists the differences between two settings, as texts for people.
//!
//! Both settings are compared in the form in which `show` writes them. `lost_keys` finds plans that
//! lost keys. `history` and `reload_state` keep the texts.

mod lost_keys;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use toml::{Table, Value};

pub use self::lost_keys::{LostKeys, lost_keys};
use super::printable::put_printable;
use super::table_settings::TableSettings;
use super::{Settings, Words, Zone, show};

/// Maximum length of a shown value, in characters.
const MAX_CHARACTERS: usize = 80;

/// Suffix of a text about a setting that takes effect only after a restart.
pub(super) const NEEDS_RESTART: &str = " (needs a restart)";

/// Lists the changes of a reload from `old` to `new`: one text for each changed setting.
///
/// Examples: `zones.per_client.rate 10r/s -> 20r/s`, `origins.app.servers + http://10.0.0.2` and
/// `zones.new added`. Routes and limits are named in brackets, because their indexes change:
/// `routes[/login].limits[per_client].burst 20 -> 40`. No text shows a password.
///
/// `started_with`: the settings at the start of the process. A setting that differs from them and
/// takes effect only at a restart is marked as such.
pub fn changes(old: &Settings, new: &Settings, started_with: &Settings) -> Vec<String> {
    let mut found = Vec::new();
    // No key of a zone is shown if the zone masks its keys in the old or in the new settings.
    let all_zones = old.zones.iter().chain(&new.zones);
    let masked_zones = all_zones.filter(|zone| zone.mask_keys);
    let masked_zones: HashSet<&str> = masked_zones.map(|zone| &*zone.name).collect();
    let old_tables = shown_tables(old, &masked_zones);
    let new_tables = shown_tables(new, &masked_zones);
    compare_tables("", &old_tables, &new_tables, &mut found);
    // Both texts omit the password. If they are equal, only the password differs.
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
    let needing_restart = new.needing_restart(started_with);
    for text in &mut found {
        // A text begins with the name of its setting. An inner name, an index or a value follows.
        let is_about = |setting: &String| {
            let rest = text.strip_prefix(setting.as_str());
            rest.is_some_and(|rest| rest.starts_with([' ', '.', '[']))
        };
        if needing_restart.iter().any(is_about) {
            text.push_str(NEEDS_RESTART);
        }
    }
    found
}

impl Settings {
    /// Returns the names of the fields that need a restart.
    ///
    /// They differ from `started_with`, the settings at the start of the process, and take effect
    /// only after the next start.
    pub fn needing_restart(&self, started_with: &Self) -> Vec<String> {
        let (old_server, old_log) = (&started_with.server, &started_with.log);
        let server = self.server.fixed_changes(self, old_server, started_with);
        let log = self.log.fixed_changes(self, old_log, started_with);
        let server = server.iter().map(|name| format!("server.{name}"));
        let log = log.iter().map(|name| format!("log.{name}"));
        server.chain(log).collect()
    }
}

/// Returns at most `max_count` texts. If some are left out, the last text gives their number.
pub(super) fn limit_count(mut texts: Vec<String>, max_count: usize) -> Vec<String> {
    if texts.len() > max_count {
        let omitted = texts.len() - (max_count - 1);
        texts.truncate(max_count - 1);
        texts.push(format!("and {omitted} more"));
    }
    texts
}

/// Returns settings as `show` writes them, without secrets and without the keys of masked zones.
fn shown_tables(settings: &Settings, masked_zones: &HashSet<&str>) -> Table {
    let is_masked = |zone: &Zone| masked_zones.contains(zone.name.as_str());
    // The output of `show` can always be read back: a test checks this.
    show(&settings.without_secrets_and_keys(is_masked))
        .parse()
        .unwrap_or_default()
}

/// Compares the fields of a table. `path`: the names that lead to the table.
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
            (old, new) => compare_values(&path, old, new, found),
        }
    }
}

/// Compares the values of a field. `None`: the field is missing.
fn compare_values(path: &str, old: Option<&Value>, new: Option<&Value>, found: &mut Vec<String>) {
    match (old, new) {
        _ if old == new => {}
        (Some(Value::Table(old)), Some(Value::Table(new))) => {
            compare_tables(path, old, new, found);
        }
        // A server is written as its URL in one file, and as a table in the other.
        (Some(Value::String(url)), Some(Value::Table(new))) if new.contains_key("url") => {
            compare_tables(path, &server_table(url), new, found);
        }
        (Some(Value::Table(old)), Some(Value::String(url))) if old.contains_key("url") => {
            compare_tables(path, old, &server_table(url), found);
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => {
            compare_lists(path, old, new, found);
        }
        _ => {
            let shown = |value: Option<&Value>| match value {
                Some(value) => shorten(&plain_text(value)),
                None => "none".to_owned(),
            };
            found.push(format!("{path} {} -> {}", shown(old), shown(new)));
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

/// Compares two lists that differ, item by item.
///
/// Items are matched by their names, because an item that was added or removed changes the indexes
/// of the items behind it.
fn compare_lists(path: &str, old: &[Value], new: &[Value], found: &mut Vec<String>) {
    let old_names: Vec<String> = old.iter().map(name_of_item).collect();
    let new_names: Vec<String> = new.iter().map(name_of_item).collect();
    let old_indices: HashMap<&String, usize> = old_names.iter().zip(0..).collect();
    let remaining: HashSet<&String> = new_names.iter().collect();
    let count_before = found.len();
    for (item, name) in old.iter().zip(&old_names) {
        if !remaining.contains(name) {
            found.push(match item {
                Value::Table(_) => format!("{path}[{name}] removed"),
                _ => format!("{path} - {}", shorten(name)),
            });
        }
    }
    // Old indices of the items that are in both lists, in their new order.
    let mut kept_indices = Vec::new();
    for (item, name) in new.iter().zip(&new_names) {
        match (old_indices.get(name), item) {
            (None, Value::Table(_)) => found.push(format!("{path}[{name}] added")),
            (None, _) => found.push(format!("{path} + {}", shorten(name))),
            (Some(index), _) => {
                kept_indices.push(*index);
                let path = format!("{path}[{name}]");
                compare_values(&path, old.get(*index), Some(item), found);
            }
        }
    }
    // The lists differ. Without a text about an item, only the places of equal items differ.
    if !kept_indices.is_sorted() || found.len() == count_before {
        found.push(format!("{path} in another order"));
    }
}

/// Returns the name of a list item.
///
/// A route is named by its conditions, a limit by its zone, a listener by its address, a server by
/// its URL, and any other value by its text.
fn name_of_item(item: &Value) -> String {
    let Value::Table(table) = item else {
        return plain_text(item);
    };
    let mut names = ["zone", "address", "url"].iter();
    if let Some(name) = names.find_map(|name| table.get(*name)) {
        return plain_text(name);
    }
    let field = |name: &str| table.get(name).map(plain_text);
    let methods = table.get("methods").and_then(Value::as_array);
    let methods: Vec<String> = methods.into_iter().flatten().map(plain_text).collect();
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

/// Returns a value as TOML on one line, but a text without its quotes.
fn plain_text(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    let mut plain = String::with_capacity(text.len());
    put_printable(&mut plain, text.chars());
    plain
}

/// Returns a text of at most [`MAX_CHARACTERS`]. The end of a longer one is omitted.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Counts the keys that the files of plans gained and lost.
///
/// `show` does not write the keys of a file, so the comparison of shown tables misses them.
fn compare_plan_files(old: &Zone, new: &Zone, found: &mut Vec<String>) {
    if old.plans == new.plans {
        return;
    }
    for (index, plan) in new.plans.iter().enumerate() {
        let mut old_plans = old.plans.iter().enumerate();
        let Some((old_index, old_plan)) = old_plans.find(|(_, old)| old.name == plan.name) else {
            continue;
        };
        // Keys in the configuration itself. The comparison of shown tables reports them.
        let inline = plan.keys.iter().chain(&old_plan.keys);
        let inline: HashSet<&[u8]> = inline.map(String::as_bytes).collect();
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
        let file = file.map_or(String::new(), |name| format!(" {}:", shorten(&name)));
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
    let old_digests = old.named.iter();
    let old_digests = old_digests.filter_map(|file| Some((&*file.path, file.digest?)));
    let old_digests: HashMap<&Path, u64> = old_digests.collect();
    let mut reported = HashSet::new();
    for file in &new.named {
        let (Some(digest), Some(old_digest)) = (file.digest, old_digests.get(&*file.path)) else {
            continue;
        };
        if digest == *old_digest || !reported.insert((&file.path, file.kind.word())) {
            continue;
        }
        let name = file.path.file_name().filter(|_| !file.is_secret);
        let name = name.map(|name| shorten(&name.to_string_lossy()));
        let name = name.map_or(String::new(), |name| format!(" {name}"));
        found.push(format!("{}{name} content changed", file.kind.word()));
    }
}

/// Reports changed secrets of rooms, and removes repeated texts about rooms.
fn compare_rooms(old: &Settings, new: &Settings, found: &mut Vec<String>) {
    // A route shows `room` only if its origin has one, and that change is already in the list.
    let is_repeated = |text: &str| {
        text.starts_with("routes[")
            && (text.ends_with(".room none -> true") || text.ends_with(".room true -> none"))
    };
    found.retain(|text| !is_repeated(text));
    for origin in &new.origins {
        let mut old_origins = old.origins.iter();
        let old_origin = old_origins.find(|old| old.name == origin.name);
        let old_room = old_origin.and_then(|old| old.room.as_ref());
        if let Some((old, new)) = old_room.zip(origin.room.as_ref())
            && old.shown_secrets() == new.shown_secrets()
            && old.secret != new.secret
        {
            found.push(format!(
                "origins.{}.room.secret has another value",
                origin.name
            ));
        }
    }
}
