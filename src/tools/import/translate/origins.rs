//! Finds the origin to which each location forwards its requests.

use std::collections::HashMap;
use std::time::Duration;

use super::limits::Connections;
use super::page::{OriginTables, Section};
use super::probe;
use super::scope::{EnclosingServer, Scope, named};
use super::upstreams::{Member, Upstream, time, url};
use crate::import::tree::Directive;

/// The origins of the locations: one for each combination of upstream and settings.
///
/// The response timeout makes no separate origin: routes that differ set their own.
pub(super) struct Origins {
    pub(super) upstreams: HashMap<String, Upstream>,
    pub(super) tables: OriginTables,
}

/// Destination of a location's requests: the name of the origin, the prefix that replaces the
/// location's prefix, and the response timeout if it differs from the origin's.
type Target = (String, Option<String>, Option<Duration>);

impl Origins {
    /// Returns the destination of a location's requests.
    ///
    /// `scope`: the blocks around `pass`. `path`: the path that a URI of `proxy_pass` replaces;
    /// `None` for a regular expression.
    ///
    /// # Errors
    ///
    /// Returns the reason why the location is left out.
    pub(super) fn of(
        &mut self,
        pass: &Directive,
        (server, scope, path): (&EnclosingServer, &Scope, Option<&str>),
        connections: &Connections,
    ) -> Result<Target, String> {
        let target = pass.arg(0).split_once("://");
        let target = target.filter(|(scheme, _)| ["http", "https"].contains(scheme));
        let (scheme, rest) =
            target.ok_or("only http:// and https:// are translated; this location is left out")?;
        // `$request_uri` is the target as the client sent it. drip always sends that.
        let rest = rest
            .strip_suffix("$request_uri")
            .filter(|rest| split(rest).1.is_empty())
            .unwrap_or(rest);
        let (authority, uri) = split(rest);
        if rest.contains('$') {
            return Err("drip's origins have no variables; this location is left out".to_owned());
        }
        let prefix = prefix(path, uri)?;
        let upstream = self.upstreams.get(authority).cloned();
        let group = upstream.is_some().then_some(authority);
        let upstream = upstream.unwrap_or_else(|| Upstream {
            servers: vec![Member::at(authority)],
            ..Upstream::default()
        });
        // drip does not support TLS over socket files.
        let is_spoken = |it: &Member| scheme == "http" || !it.address.starts_with("unix:");
        let is_known = |it: &&Member| is_spoken(it) && probe::server(&url(scheme, &it.address));
        let servers = upstream.servers.iter().filter(is_known).cloned();
        let mut servers: Vec<Member> = servers.collect();
        if servers.iter().all(|it| it.is_backup) {
            // Backup servers without primary servers act as primary servers.
            for it in &mut servers {
                it.is_backup = false;
            }
        }
        let servers: Vec<String> = servers.iter().map(|it| it.entry(scheme)).collect();
        if servers.is_empty() {
            return Err(
                "there is no server that drip can use; this location is left out".to_owned(),
            );
        }
        let mut section = Section {
            comments: upstream.section.comments,
            ..Section::default()
        };
        let servers = format!("[{}]", servers.join(", "));
        section.fields.push(("servers", servers));
        if scheme == "https" {
            let what = "drip verifies the certificate of the origin; nginx does so only with proxy_ssl_verify";
            note(pass, what);
        }
        if let Some(timeout) = timeout("proxy_connect_timeout", scope) {
            section.span("connect_timeout", timeout);
        }
        let response_timeout = timeout("proxy_read_timeout", scope);
        if let Some(most) = connections.most {
            section.fields.push(("max_in_flight", most.to_string()));
        }
        let owner = connections.is_by_server.then_some(server.server);
        section.fields.extend(upstream.section.fields);
        if let Some(host) = host(group, server.name, scope) {
            section.text("host", &host);
        }
        let (origin, response_timeout) =
            self.tables
                .named(section, owner, authority, response_timeout);
        Ok((origin, prefix, response_timeout))
    }
}

/// Returns the `proxy_pass` of a block, ignoring nested blocks.
pub(super) fn pass<'t, 'n>(block: &'t [Directive<'n>]) -> Option<&'t Directive<'n>> {
    named(block, "proxy_pass").next()
}

/// Adds a note about a `proxy_pass`.
pub(super) fn note(pass: &Directive, what: &str) {
    pass.at.note(format!("proxy_pass {}: {what}", pass.arg(0)));
}

/// Returns the prefix that replaces the location's path; `uri`: the URI of `proxy_pass`.
///
/// # Errors
///
/// Returns the reason why drip cannot express the replacement.
fn prefix(path: Option<&str>, uri: &str) -> Result<Option<String>, String> {
    match path {
        _ if uri.is_empty() => Ok(None),
        Some(path) if path == uri => Ok(None),
        Some(path) if probe::rewrite(path, uri) => Ok(Some(uri.to_owned())),
        _ => Err(format!(
            "{uri} is no prefix that drip can put before a path; this location is left out"
        )),
    }
}

/// Splits a target into the address and the URI.
fn split(rest: &str) -> (&str, &str) {
    if let Some(socket) = rest.strip_prefix("unix:") {
        let end = socket.find(':').unwrap_or(socket.len());
        let uri = socket[end..].strip_prefix(':').unwrap_or_default();
        return (&rest[..end + "unix:".len()], uri);
    }
    rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()))
}

/// Returns the time of a directive, if it is set.
fn timeout(name: &str, scope: &Scope) -> Option<Duration> {
    time(scope.get(name)?)
}

/// Returns the host setting for `proxy_set_header Host`; `None` if it equals drip's default.
fn host(group: Option<&str>, server_name: Option<&str>, scope: &Scope) -> Option<String> {
    let mut fields = scope.all("proxy_set_header").into_iter();
    let field = fields.find(|field| field.arg(0).eq_ignore_ascii_case("host"));
    let own = || match group {
        Some(name) if probe::origin_host(name) && name != "preserve" => name.to_owned(),
        _ => "origin".to_owned(),
    };
    let Some(field) = field else {
        return Some(own());
    };
    let value = field.arg(1);
    match value {
        "$host" | "$http_host" => None,
        "$proxy_host" => Some(own()),
        "$server_name" => server_name.map(str::to_owned).or_else(|| Some(own())),
        literal if probe::origin_host(literal) && !["preserve", "origin"].contains(&literal) => {
            Some(literal.to_owned())
        }
        _ => {
            field.at.note(format!("proxy_set_header Host {value}: drip cannot build this value; the client's Host is kept"));
            None
        }
    }
}
