#[cfg(test)]
mod tests;

use std::fmt::{Display, Write as _};
use std::num::NonZeroU64;
use std::path::Path;

use super::of_table::{OfTable, Rows, Shown};
use super::size::show_size;
use super::toml_string::{toml_string, toml_text};
use super::{
    Access, CostRule, FieldEdit, Format, ForwardedHeader, Level, ListenAddress, ListenService,
    PathRewrite, Plan, RatelimitHeaders, Redis, Route, RouteAction, RouteLimit, Server, Settings,
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
    server(&mut out, settings);
    for origin in &settings.origins {
        out.rows(&["origins", &origin.name], origin.shown(settings));
    }
    for zone in &settings.zones {
        show_zone(&mut out, zone);
    }
    show_redis(&mut out, &settings.redis);
    for (index, route) in settings.routes.iter().enumerate() {
        show_route(&mut out, index, route);
    }
    log(&mut out, settings);
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

fn server(out: &mut Page, settings: &Settings) {
    let server = &settings.server;
    let admin = server
        .admin
        .map_or("off".to_owned(), |admin| admin.to_string());
    let header = match server.forwarded_header {
        ForwardedHeader::XForwardedFor => "x-forwarded-for",
        ForwardedHeader::Forwarded => "forwarded",
    };
    out.table(&["server"]);
    out.field("name", toml_text(&server.name));
    out.field("listen", listen(server));
    out.field("admin", toml_text(&admin));
    out.field("admin_hosts", quoted(&server.admin_hosts));
    out.field("workers", server.workers);
    out.field("trusted_proxies", quoted(server.trusted_proxies.patterns()));
    out.field("proxy_protocol", quoted(server.proxy_protocol.patterns()));
    out.field("forwarded_header", toml_text(header));
    out.field("max_connections", server.max_connections);
    out.field("max_concurrent_streams", server.max_concurrent_streams);
    out.field("hold_streams", server.hold_streams);
    out.field("underscores_in_headers", server.underscores_in_headers);
    out.field("keep_alive", toml_text(&show_duration(server.keep_alive)));
    let tcp_keepalive = server.tcp_keepalive.unwrap_or_default();
    out.field("tcp_keepalive", toml_text(&show_duration(tcp_keepalive)));
    out.field(
        "header_timeout",
        toml_text(&show_duration(server.header_timeout)),
    );
    out.field(
        "body_timeout",
        toml_text(&show_duration(server.body_timeout)),
    );
    let min_body_rate = server.min_body_rate.map(|rate| rate.to_string());
    out.field(
        "min_body_rate",
        toml_text(min_body_rate.as_deref().unwrap_or("0")),
    );
    out.field("max_header_size", head_size(server.max_header_size));
    let max_body_size = server.max_body_size.map_or(0, NonZeroU64::get);
    out.field("max_body_size", toml_text(&show_size(max_body_size)));
    out.field(
        "shutdown_timeout",
        toml_text(&show_duration(server.shutdown_timeout)),
    );
    if let Some(state) = &server.state {
        out.field("state", toml_text(&state.display().to_string()));
    }
    if let Some(tls) = &server.tls {
        out.table(&["server", "tls"]);
        out.field("cert", files(tls.pairs.iter().map(|pair| &*pair.cert)));
        out.field("key", files(tls.pairs.iter().map(|pair| &*pair.key)));
    }
}

/// The addresses for clients: as texts, where that says it all.
fn listen(server: &Server) -> String {
    let items = server.listen_as_written().map(|(address, service)| {
        let mode = match address {
            ListenAddress::Tcp(_) => None,
            ListenAddress::Unix { mode, .. } => *mode,
        };
        let address = toml_text(&address.to_string());
        let service = match service {
            None => String::new(),
            Some(ListenService::Plain) => ", tls = false".to_owned(),
            Some(ListenService::Tls) => ", tls = true".to_owned(),
            Some(ListenService::Redirect(port)) => format!(", redirect = \"https:{port}\""),
        };
        let mode = mode.map_or(String::new(), |mode| format!(", mode = \"{mode}\""));
        match format!("{service}{mode}") {
            fields if fields.is_empty() => address,
            fields => format!("{{ address = {address}{fields} }}"),
        }
    });
    list(items)
}

fn show_zone(out: &mut Page, zone: &Zone) {
    out.table(&["zones", &zone.name]);
    out.field("key", toml_string(&zone.key.to_string()));
    out.field("rate", toml_text(&zone.rate.to_string()));
    out.field("algorithm", toml_text(zone.algorithm.name()));
    out.field("max_keys", zone.max_keys);
    let new_keys = zone
        .new_keys
        .map_or("none".to_owned(), |rate| rate.to_string());
    out.field("new_keys", toml_text(&new_keys));
    out.field("idle_timeout", toml_text(&show_duration(zone.idle_timeout)));
    out.field("ipv6_prefix", zone.ipv6_prefix);
    out.field("exempt", quoted(&zone.exempt));
    out.field("mask_keys", zone.mask_keys);
    out.field("store", toml_text(zone.store.name()));
    out.field("on_store_failure", toml_text(zone.on_store_failure.name()));
    out.field("lease", toml_text(&show_duration(zone.lease)));
    for (plan, count) in zone.plans.iter().zip(zone.plans.counts()) {
        show_plan(out, zone, plan, count);
    }
}

/// Writes a plan that has `count` keys, with those of its file.
fn show_plan(out: &mut Page, zone: &Zone, plan: &Plan, count: usize) {
    out.table(&["zones", &zone.name, "plans", &plan.name]);
    let keys = if count == 1 { "key" } else { "keys" };
    out.comment(format!("{count} {keys}"));
    out.field("keys", quoted(&plan.keys));
    if let Some(file) = &plan.file {
        out.field("file", toml_text(&file.display().to_string()));
    }
    if let Some(rate) = plan.rate {
        out.field("rate", toml_text(&rate.to_string()));
    }
    if let Some(burst) = plan.burst {
        out.field("burst", burst);
    }
    out.field("weight", plan.weight);
    if let Some(class) = &plan.class {
        out.field("class", toml_text(class));
    }
}

fn show_redis(out: &mut Page, redis: &Redis) {
    out.table(&["redis"]);
    out.field("url", toml_text(redis.url.written()));
    out.field("timeout", toml_text(&show_duration(redis.timeout)));
    out.field("prefix", toml_text(&redis.prefix));
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

fn log(out: &mut Page, settings: &Settings) {
    let log = &settings.log;
    let level = match log.level {
        Level::Error => "error",
        Level::Warn => "warn",
        Level::Info => "info",
        Level::Debug => "debug",
        Level::Trace => "trace",
    };
    let format = match log.format {
        Format::Text => "text",
        Format::Json => "json",
    };
    let access = match &log.access {
        Access::Off => "off".to_owned(),
        Access::Stdout => "stdout".to_owned(),
        Access::File(path) => path.display().to_string(),
    };
    out.table(&["log"]);
    out.field("level", toml_text(level));
    out.field("format", toml_text(format));
    out.field("access", toml_text(&access));
    let otlp = log.otlp.as_ref();
    let otlp = otlp.map_or("off".to_owned(), ToString::to_string);
    out.field("otlp", toml_text(&otlp));
}

/// A name as a TOML key: without quotes if TOML allows that.
fn key(name: &str) -> String {
    if name.contains('.') {
        toml_string(name)
    } else {
        name.to_owned()
    }
}

fn head_size(bytes: usize) -> String {
    toml_text(&show_size(bytes as u64))
}

/// File names: one as a string, several as a list.
fn files<'p>(names: impl ExactSizeIterator<Item = &'p Path>) -> String {
    let alone = names.len() == 1;
    let mut names = names.map(|name| toml_text(&name.display().to_string()));
    match names.next() {
        Some(name) if alone => name,
        first => list(first.into_iter().chain(names)),
    }
}

fn quoted<T: Display>(items: &[T]) -> String {
    list(items.iter().map(|item| toml_text(&item.to_string())))
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}
