//! Writes settings as a `gateway.toml`, for `drip show`, the API and `changes`.
//!
//! Each table of the settings gives its rows: names of fields with their values as TOML. `changes`
//! compares the settings in this form.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use super::table_settings::{Rows, Shown, TableSettings};
use super::toml_string::toml_string;
use super::{Redis, Settings, StoreKind};

/// Writes settings as a `gateway.toml` with all values. It reads back as the same settings.
pub fn show(settings: &Settings) -> String {
    let mut writer = Writer {
        text: String::new(),
        path: Vec::new(),
        settings,
    };
    writer.write_table("server", &["server"], settings.server.shown_rows(settings));
    for origin in &settings.origins {
        let rows = without_unused(origin.shown_rows(settings), origin.store);
        writer.write_named("origins", &origin.name, rows);
    }
    for zone in &settings.zones {
        let rows = without_unused(zone.shown_rows(settings), zone.store);
        writer.write_named("zones", &zone.name, rows);
    }
    for jwt in settings.jwt.iter() {
        writer.write_named("jwt", &jwt.name, jwt.shown_rows(settings));
    }
    if uses_redis(settings) || settings.redis != Redis::default() {
        writer.write_table("redis", &["redis"], settings.redis.shown_rows(settings));
    }
    for (index, route) in settings.routes.iter().enumerate() {
        let path = [ROUTES, &index.to_string()];
        writer.write_table(ROUTES, &path, route.rows(settings));
    }
    writer.write_table("log", &["log"], settings.log.shown_rows(settings));
    writer.text
}

/// Returns whether something is in Redis.
fn uses_redis(settings: &Settings) -> bool {
    let mut zones = settings.zones.iter().map(|zone| zone.store);
    let mut rooms = settings.origins.iter().filter_map(|it| it.room.as_ref());
    let mut origins = settings.origins.iter().map(|origin| origin.store);
    let is_redis = |store| store == StoreKind::Redis;
    zones.any(is_redis) || origins.any(is_redis) || rooms.any(|room| is_redis(room.store))
}

/// Defaults of the fields of a zone or an origin that matter with Redis alone.
const WITH_REDIS: [(&str, &str); 3] = [
    ("lease", "\"0\""),
    ("orphan", "\"75s\""),
    ("on_store_failure", "\"local\""),
];

/// Removes defaults that matter with Redis alone from the rows of what is in memory.
fn without_unused(mut rows: Rows, store: StoreKind) -> Rows {
    rows.retain(|(name, shown)| match shown {
        Shown::Value(value) if store == StoreKind::Memory => {
            !WITH_REDIS.contains(&(&**name, &**value))
        }
        _ => true,
    });
    rows
}

/// Title of the tables of routes, which are written `[[routes]]`.
const ROUTES: &str = "routes";

/// Writes the tables of a file, one after another.
struct Writer<'s> {
    /// The text that has been written so far.
    text: String,
    /// Names that lead to the current table.
    path: Vec<String>,
    /// The settings that are written. They know which values have variables of the environment.
    settings: &'s Settings,
}

impl Writer<'_> {
    /// Writes the table `[kind.name]`, such as `[zones.per_client]`.
    fn write_named(&mut self, kind: &str, name: &str, rows: Rows) {
        self.write_table(&format!("{kind}.{}", toml_key(name)), &[kind, name], rows);
    }

    /// Writes a table, and then its inner tables.
    ///
    /// `title`: the text in the brackets. `path`: the names that lead to the table. In a title, a
    /// route has no index: an inner table belongs to the route before it.
    fn write_table(&mut self, title: &str, path: &[&str], rows: Rows) {
        let is_table = |(_, shown): &(_, Shown)| matches!(shown, Shown::Table(_));
        let (tables, fields): (Rows, Rows) = rows.into_iter().partition(is_table);
        if tables.is_empty() || !fields.is_empty() {
            let gap = if self.text.is_empty() { "" } else { "\n" };
            // Writing to a string does not fail.
            let _ = match title {
                ROUTES => writeln!(self.text, "{gap}[[{title}]]"),
                _ => writeln!(self.text, "{gap}[{title}]"),
            };
        }
        self.path = path.iter().map(|name| (*name).to_owned()).collect();
        self.write_fields(fields);
        for (name, shown) in tables {
            if let Shown::Table(rows) = shown {
                let title = format!("{title}.{}", toml_key(&name));
                self.write_table(&title, &[path, &[&name]].concat(), rows);
            }
        }
    }

    /// Writes fields. A value from the environment is written as in the file.
    fn write_fields(&mut self, rows: Rows) {
        for (name, shown) in rows {
            self.path.push(name);
            let name = self.path.last();
            let name = name.map(|name| toml_key(name)).unwrap_or_default();
            let _ = match (shown, self.settings.from_environment.get(&self.path)) {
                (Shown::Comment(comment), _) => writeln!(self.text, "# {comment}"),
                (Shown::Value(_), Some(written)) => writeln!(self.text, "{name} = {written}"),
                (Shown::Value(value), None) => writeln!(self.text, "{name} = {value}"),
                (Shown::Table(_), _) => Ok(()),
            };
            self.path.pop();
        }
    }
}

/// Returns a name as a TOML key, without quotes if TOML allows that.
fn toml_key(name: &str) -> String {
    if name.contains('.') {
        toml_string(name)
    } else {
        name.to_owned()
    }
}
