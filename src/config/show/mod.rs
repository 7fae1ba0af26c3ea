//! Writes settings as a `gateway.toml`.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use super::Settings;
use super::table_settings::{Rows, Shown, TableSettings};
use super::toml_string::toml_string;

/// Writes settings as a `gateway.toml` with all values. It reads back as the same settings.
pub fn show(settings: &Settings) -> String {
    let mut out = Writer {
        text: String::new(),
        path: Vec::new(),
        settings,
    };
    out.table("server", &["server"], settings.server.shown(settings));
    for origin in &settings.origins {
        out.named("origins", &origin.name, origin.shown(settings));
    }
    for zone in &settings.zones {
        out.named("zones", &zone.name, zone.shown(settings));
    }
    for jwt in settings.jwt.iter() {
        out.named("jwt", &jwt.name, jwt.shown(settings));
    }
    out.table("redis", &["redis"], settings.redis.shown(settings));
    for (index, route) in settings.routes.iter().enumerate() {
        let path = [ROUTES, &index.to_string()];
        out.table(ROUTES, &path, route.rows(settings));
    }
    out.table("log", &["log"], settings.log.shown(settings));
    out.text
}

/// Title of the list of routes.
const ROUTES: &str = "routes";

/// The text that has been written so far.
struct Writer<'s> {
    text: String,
    /// Names that lead to the current table.
    path: Vec<String>,
    settings: &'s Settings,
}

impl Writer<'_> {
    /// Writes the table of this name in the table `kind`.
    fn named(&mut self, kind: &str, name: &str, rows: Rows) {
        self.table(&format!("{kind}.{}", key(name)), &[kind, name], rows);
    }

    /// Writes the table at `path`, and then its inner tables.
    ///
    /// The title of a route has no index: an inner table belongs to the route before it.
    fn table(&mut self, title: &str, path: &[&str], rows: Rows) {
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
        self.fields(fields);
        for (name, shown) in tables {
            if let Shown::Table(rows) = shown {
                let title = format!("{title}.{}", key(&name));
                self.table(&title, &[path, &[&name]].concat(), rows);
            }
        }
    }

    /// Writes fields. A value from the environment is written as in the file.
    fn fields(&mut self, rows: Rows) {
        for (name, shown) in rows {
            self.path.push(name);
            let name = self.path.last().map(|name| key(name)).unwrap_or_default();
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
fn key(name: &str) -> String {
    if name.contains('.') {
        toml_string(name)
    } else {
        name.to_owned()
    }
}
