#[cfg(test)]
mod tests;

use std::fmt::{Display, Write as _};

use super::of_table::{OfTable, Rows, Shown};
use super::size::show_size;
use super::toml_string::{toml_string, toml_text};
use super::{
    CostRule, FieldEdit, PathRewrite, RatelimitHeaders, Route, RouteAction, RouteLimit, Settings,
    Zone,
};
use crate::limit::{Delay, show_duration};

/// Writes settings as a `gateway.toml` with all values, which reads back as the same settings.
#[must_use]
pub fn show(settings: &Settings) -> String {
    let mut out = Page {
        text: String::new(),
        path: Vec::new(),
        settings,
    };
    out.rows(&["server"], settings.server.shown(settings));
    for origin in &settings.origins {
        out.rows(&["origins", &origin.name], origin.shown(settings));
    }
    for zone in &settings.zones {
        out.rows(&["zones", &zone.name], zone.shown(settings));
    }
    out.rows(&["redis"], settings.redis.shown(settings));
    for (index, route) in settings.routes.iter().enumerate() {
        show_route(&mut out, index, route);
    }
    out.rows(&["log"], settings.log.shown(settings));
    out.text
}

struct Page<'s> {
    text: String,
    /// The names that lead to the table.
    path: Vec<String>,
    settings: &'s Settings,
}

impl Page<'_> {
    /// Begins the table that these names lead to.
    fn table(&mut self, path: &[&str]) {
        let names = path.iter().map(|name| key(name));
        self.title(&format!("[{}]", names.collect::<Vec<_>>().join(".")), path);
    }

    /// Writes a table, and then those that are in it.
    fn rows(&mut self, path: &[&str], rows: Rows) {
        let is_table = |(_, shown): &(_, Shown)| matches!(shown, Shown::Table(_));
        let (tables, fields): (Rows, Rows) = rows.into_iter().partition(is_table);
        if tables.is_empty() || !fields.is_empty() {
            self.table(path);
        }
        for (name, shown) in fields.into_iter().chain(tables) {
            match shown {
                Shown::Value(value) => self.field(&key(&name), value),
                Shown::Comment(comment) => self.comment(comment),
                Shown::Table(rows) => self.rows(&[path, &[&name]].concat(), rows),
            }
        }
    }

    fn title(&mut self, title: &str, path: &[&str]) {
        let gap = if self.text.is_empty() { "" } else { "\n" };
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{gap}{title}");
        self.path = path.iter().map(|name| (*name).to_owned()).collect();
    }

    fn comment(&mut self, comment: impl Display) {
        let _ = writeln!(self.text, "# {comment}");
    }

    /// Writes a field. A value from the environment is written as in the file.
    fn field(&mut self, name: &str, value: impl Display) {
        self.path.push(name.to_owned());
        let _ = match self.settings.from_environment.get(&self.path) {
            Some(written) => writeln!(self.text, "{name} = {written}"),
            None => writeln!(self.text, "{name} = {value}"),
        };
        self.path.pop();
    }
}

fn show_route(out: &mut Page, index: usize, route: &Route) {
    let settings = out.settings;
    let RatelimitHeaders {
        x_ratelimit,
        ratelimit,
        server_timing,
    } = route.headers;
    let headers = [
        (x_ratelimit, "x-ratelimit"),
        (ratelimit, "ratelimit"),
        (server_timing, "server-timing"),
    ];
    let headers = headers
        .into_iter()
        .filter(|(on, _)| *on)
        .map(|(_, name)| name);
    let limits = route
        .limits
        .iter()
        .map(|limit| show_limit(*limit, &settings.zones));
    out.title("[[routes]]", &["routes", &index.to_string()]);
    out.field("path", toml_text(&route.path.to_string()));
    if let Some(host) = &route.host {
        out.field("host", toml_text(host));
    }
    out.field("methods", quoted(&route.methods));
    let origin = match route.action {
        RouteAction::Forward(origin) => &settings.origins[origin],
        RouteAction::Refuse(status) => {
            out.field("refuse", status);
            return show_fields(out, route);
        }
    };
    out.field("origin", toml_text(&origin.name));
    if !route.class.is_empty() {
        out.field("class", toml_text(&route.class));
    }
    out.field("cost", cost(&route.cost));
    out.field("refund", quoted(&route.refund));
    out.field("limits", list(limits));
    out.field(
        "max_wait",
        toml_text(&route.max_wait.map_or("none".to_owned(), show_duration)),
    );
    out.field("dry_run", route.dry_run);
    out.field("reject_status", route.reject_status);
    out.field("reject_body", toml_text(&route.reject_body));
    out.field("headers", list(headers.map(toml_text)));
    if let Some(PathRewrite { strip, add }) = &route.rewrite {
        for (name, prefix) in [("strip_prefix", strip), ("add_prefix", add)] {
            if !prefix.is_empty() {
                out.field(name, toml_text(prefix));
            }
        }
    }
    show_fields(out, route);
}

fn show_fields(out: &mut Page, route: &Route) {
    for (name, edits) in [
        ("request_headers", &route.request_fields),
        ("response_headers", &route.response_fields),
        ("answer_headers", &route.answer_fields),
    ] {
        let edit = |(name, edit): (&str, &FieldEdit)| match edit {
            FieldEdit::Set(value) => format!("{} = {}", toml_string(name), toml_text(value)),
            FieldEdit::Remove => format!("{} = false", toml_string(name)),
        };
        if !edits.is_empty() {
            let edits: Vec<String> = edits.iter().map(edit).collect();
            out.field(name, format!("{{ {} }}", edits.join(", ")));
        }
    }
}

fn cost(rule: &CostRule) -> String {
    match rule {
        CostRule::Fixed(cost) => cost.to_string(),
        CostRule::Header { name, default, max } => {
            let name = toml_text(name);
            format!("{{ header = {name}, default = {default}, max = {max} }}")
        }
        CostRule::BodyPer { size, max } => {
            let size = toml_text(&show_size(size.get()));
            format!("{{ body_per = {size}, max = {max} }}")
        }
        CostRule::ResponseHeader {
            name,
            estimate,
            max,
        } => {
            let name = toml_text(name);
            format!("{{ response_header = {name}, estimate = {estimate}, max = {max} }}")
        }
    }
}

fn show_limit(limit: RouteLimit, zones: &[Zone]) -> String {
    let of = &zones[limit.zone];
    let (zone, algorithm) = (toml_text(&of.name), of.algorithm);
    let burst = limit.limit.burst;
    let in_flight = limit.limit.in_flight;
    let in_flight = in_flight.map_or(String::new(), |most| format!(", in_flight = {most}"));
    match limit.limit.delay {
        _ if algorithm.has_windows() => format!("{{ zone = {zone} }}"),
        _ if !algorithm.queues() => {
            format!("{{ zone = {zone}, burst = {} }}", u64::from(burst) + 1)
        }
        _ if of.limits_no_rate() => format!("{{ zone = {zone}, burst = {burst}{in_flight} }}"),
        Delay::Above(delay) => {
            format!("{{ zone = {zone}, burst = {burst}, delay = {delay}{in_flight} }}")
        }
        Delay::Never => format!("{{ zone = {zone}, burst = {burst}, nodelay = true{in_flight} }}"),
    }
}

/// A name as a TOML key: without quotes if TOML allows that.
fn key(name: &str) -> String {
    if name.contains('.') {
        toml_string(name)
    } else {
        name.to_owned()
    }
}

fn quoted<T: Display>(items: &[T]) -> String {
    list(items.iter().map(|item| toml_text(&item.to_string())))
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}
