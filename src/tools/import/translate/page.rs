//! Tables of a `gateway.toml`, and their text.
//!
//! A section is a table with its comments. A page is the text of all sections.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use config::{show_size, toml_string, toml_text};
use limit::show_duration;

/// Field names with their values in TOML syntax.
pub(in crate::import) type Fields = Vec<(&'static str, String)>;

/// A table of a `gateway.toml`.
#[derive(Clone, Debug, Default)]
pub(in crate::import) struct Section {
    /// The title, such as `[server]`.
    pub(in crate::import) title: String,
    pub(in crate::import) comments: Vec<String>,
    pub(in crate::import) fields: Fields,
}

impl Section {
    /// Adds `max_body_size`: the largest of the sizes in bytes, where 0 means no limit.
    ///
    /// `default`: the value without sizes. `differ`: start of the comment if the sizes differ.
    pub(in crate::import) fn add_largest_body(
        &mut self,
        sizes: &[u64],
        default: u64,
        differ: &str,
    ) {
        let largest = sizes.iter().max_by_key(|size| (**size == 0, **size));
        let largest = largest.copied().unwrap_or(default);
        let shown = show_size(largest);
        if sizes.iter().any(|size| *size != largest) {
            let comment = format!("{differ}; drip has one for all, and {shown} is the largest");
            self.comments.push(comment);
        }
        self.add_text("max_body_size", &shown);
    }

    /// Returns a table without fields.
    pub(in crate::import) fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            ..Self::default()
        }
    }

    /// Returns the table of a zone whose keys have whole IPv6 addresses, as in nginx.
    pub(in crate::import) fn zone(
        name: &str,
        (key, rate): (&str, &str),
        max_keys: Option<String>,
        exempt: &[String],
    ) -> Self {
        let mut section = Self::new(format!("[zones.{name}]"));
        section.add_text("key", key);
        section.add_text("rate", rate);
        section.fields.extend(max_keys.map(|it| ("max_keys", it)));
        section.fields.push(("ipv6_prefix", "128".to_owned()));
        if !exempt.is_empty() {
            section.fields.push(("exempt", list(exempt)));
        }
        section
    }

    /// Adds a field with a text.
    pub(in crate::import) fn add_text(&mut self, name: &'static str, value: &str) {
        // `$` in a key names drip's own variables, so environment variables must not be expanded
        // there.
        let quoted = match name {
            "key" => toml_string(value),
            _ => toml_text(value),
        };
        self.fields.push((name, quoted));
    }

    /// Adds a field with a duration.
    pub(in crate::import) fn add_duration(&mut self, name: &'static str, value: Duration) {
        self.fields.push((name, toml_string(&show_duration(value))));
    }

    /// Adds a field with a number.
    pub(in crate::import) fn add_number(&mut self, name: &'static str, value: u32) {
        self.fields.push((name, value.to_string()));
    }
}

/// Returns the text of a file with these tables.
pub(in crate::import) fn text(sections: &[Section]) -> String {
    let mut page = String::new();
    for section in sections {
        if !page.is_empty() {
            page.push('\n');
        }
        for comment in &section.comments {
            // Writing to a string does not fail.
            let _ = writeln!(page, "# {comment}");
        }
        let _ = writeln!(page, "{}", section.title);
        for (name, value) in &section.fields {
            let _ = writeln!(page, "{name} = {value}");
        }
    }
    page
}

/// Formats a TOML list of strings.
pub(in crate::import) fn list(items: &[String]) -> String {
    let items = items.iter().map(|item| toml_text(item)).collect::<Vec<_>>();
    format!("[{}]", items.join(", "))
}

/// Returns the absolute path of a file named relative to the folder of nginx's main file.
pub(super) fn absolute(folder: &Path, name: &str) -> String {
    let path = folder.join(name);
    let path = std::path::absolute(&path).unwrap_or(path);
    path.display().to_string()
}

/// Maximum length of a table name, in characters.
const MAX_NAME: usize = 100;

/// The table names that are in use.
#[derive(Debug, Default)]
pub(in crate::import) struct Names(HashSet<String>);

impl Names {
    /// Returns a new table name: `like` without forbidden characters, and with a number if needed.
    pub(in crate::import) fn unique(&mut self, like: &str) -> String {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let base = like.chars().take(MAX_NAME);
        let mut base: String = base.map(|c| if is_allowed(c) { c } else { '-' }).collect();
        if base.is_empty() {
            base.push('-');
        }
        let mut name = base.clone();
        let mut number = 1;
        while !self.0.insert(name.clone()) {
            number += 1;
            name = format!("{base}-{number}");
        }
        name
    }
}

/// Default of nginx's `proxy_read_timeout` and of an origin's `response_timeout`.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// The tables of origins: one for each combination of fields.
///
/// The response timeout makes no separate origin: routes that differ set their own.
#[derive(Default)]
pub(in crate::import) struct OriginTables {
    pub(in crate::import) sections: Vec<Section>,
    /// Name and response timeout of each origin.
    ///
    /// The key is the origin's other fields, and the index of the server for which its connections
    /// are counted; `None`: for all servers together.
    known: HashMap<(Fields, Option<usize>), (String, Duration)>,
    names: Names,
}

impl OriginTables {
    /// Returns the name of the origin with these fields. A new one gets a name similar to `like`.
    ///
    /// Also returns the response timeout of the route if it differs from that of the origin.
    /// `counting_server`: the server for which the connections are counted.
    pub(in crate::import) fn find_or_add(
        &mut self,
        mut section: Section,
        counting_server: Option<usize>,
        like: &str,
        response_timeout: Option<Duration>,
    ) -> (String, Option<Duration>) {
        let timeout = response_timeout.unwrap_or(RESPONSE_TIMEOUT);
        let key = (section.fields.clone(), counting_server);
        if let Some((name, known)) = self.known.get(&key) {
            return (name.clone(), Some(timeout).filter(|it| it != known));
        }
        if let Some(timeout) = response_timeout {
            section.add_duration("response_timeout", timeout);
        }
        // The comments of an upstream are written at the first of its origins.
        let mut known = self.sections.iter();
        if known.any(|known| known.comments == section.comments) {
            section.comments.clear();
        }
        let name = self.names.unique(like);
        self.known.insert(key, (name.clone(), timeout));
        section.title = format!("[origins.{name}]");
        self.sections.push(section);
        (name, None)
    }
}
