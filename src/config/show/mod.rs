//! Writes settings as a `gateway.toml`.

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use super::Settings;
use super::table_settings::{Rows, Shown, TableSettings};
use super::toml_string::toml_string;

/// Writes settings as a `gateway.toml` with all values. It reads back as the same settings.
pub fn show(settings: &Settings) -> String {
    let mut out = Page {
        text: String::new(),
        path: Vec::new(),
        settings,
    };
    out.table(&["server"], settings.server.shown(settings));
    for origin in &settings.origins {
        out.table(&["origins", &origin.name], origin.shown(settings));
    }
    for zone in &settings.zones {
        out.table(&["zones", &zone.name], zone.shown(settings));
    }
    for jwt in settings.jwt.iter() {
        out.table(&["jwt", &jwt.name], jwt.shown(settings));
    }
    out.table(&["redis"], settings.redis.shown(settings));
    for (index, route) in settings.routes.iter().enumerate() {
        out.route(index, route.rows(settings));
    }
    out.table(&["log"], settings.log.shown(settings));
    out.text
}

struct Page<'s> {
    text: String,
    /// Names that lead to the current table.
    path: Vec<String>,
    settings: &'s Settings,
}

impl Page<'_> {
    /// Writes the table at `path`, and then its inner tables.
    fn table(&mut self, path: &[&str], rows: Rows) {
        let is_table = |(_, shown): &(_, Shown)| matches!(shown, Shown::Table(_));
        let (tables, fields): (Rows, Rows) = rows.into_iter().partition(is_table);
        if tables.is_empty() || !fields.is_empty() {
            let names: Vec<String> = path.iter().map(|name| key(name)).collect();
            self.title(&format!("[{}]", names.join(".")), path);
        }
        self.fields(fields);
        for (name, shown) in tables {
            if let Shown::Table(rows) = shown {
                self.table(&[path, &[&name]].concat(), rows);
            }
        }
    }

    /// Writes one route, and its inner tables.
    fn route(&mut self, index: usize, rows: Rows) {
        let index = index.to_string();
        let is_table = |(_, shown): &(_, Shown)| matches!(shown, Shown::Table(_));
        let (tables, fields): (Rows, Rows) = rows.into_iter().partition(is_table);
        self.title("[[routes]]", &["routes", &index]);
        self.fields(fields);
        for (name, shown) in tables {
            if let Shown::Table(rows) = shown {
                // The title has no index: the table belongs to the route before it.
                self.title(&format!("[routes.{name}]"), &["routes", &index, &name]);
                self.fields(rows);
            }
        }
    }

    fn title(&mut self, title: &str, path: &[&str]) {
        let gap = if self.text.is_empty() { "" } else { "\n" };
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{gap}{title}");
        self.path = path.iter().map(|name| (*name).to_owned()).collect();
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
