//! Finds the origin to which each location forwards its requests.
//!
//! An upstream is nginx's named group of servers. drip's origin also has settings, so locations
//! with different settings need several origins for one upstream.

use std::collections::HashMap;
use std::time::Duration;

use super::limits::Connections;
use super::page::{OriginTables, Section};
use super::probe;
use super::scope::{EnclosingServer, Scope, named};
use super::upstreams::{Member, Upstream, read_time, url};
use crate::import::tree::Directive;

/// The origins of the locations: one for each combination of upstream and settings.
pub(super) struct Origins {
    pub(super) upstreams: HashMap<String, Upstream>,
    pub(super) tables: OriginTables,
}

/// Destination of a location's requests.
pub(super) struct Target {
    /// Name of the origin.
    pub(super) origin: String,
    /// Prefix that replaces the path of the location.
    pub(super) prefix: Option<String>,
    /// Response timeout, if it differs from the origin's.
    pub(super) response_timeout: Option<Duration>,
}

impl Origins {
    /// Returns the destination of a location's requests.
    ///
    /// `scope`: the blocks around the `proxy_pass`. `path`: the path that a URI of `proxy_pass`
    /// replaces; `None` for a regular expression.
    ///
    /// # Errors
    ///
    /// Returns the reason why the location is left out.
    pub(super) fn find(
        &mut self,
        pass: &Directive,
        server: &EnclosingServer,
        scope: &Scope,
        path: Option<&str>,
        connections: &Connections,
    ) -> Result<Target, String> {
        let parts = pass.arg(0).split_once("://");
        let parts = parts.filter(|(scheme, _)| ["http", "https"].contains(scheme));
        let (scheme, rest) =
            parts.ok_or("only http:// and https:// are translated; this location is left out")?;
        // `$request_uri` is the target as the client sent it. drip always sends that.
        let rest = rest
            .strip_suffix("$request_uri")
            .filter(|rest| split_uri(rest).1.is_empty())
            .unwrap_or(rest);
        let (authority, uri) = split_uri(rest);
        if rest.contains('$') {
            return Err("drip's origins have no variables; this location is left out".to_owned());
        }
        let prefix = added_prefix(path, uri)?;
        let upstream = self.upstreams.get(authority).cloned();
        let upstream_name = upstream.is_some().then_some(authority);
        // Any other authority is the address of one server.
        let upstream = upstream.unwrap_or_else(|| Upstream {
            servers: vec![Member::of_address(authority.to_owned())],
            ..Upstream::default()
        });
        // drip does not support TLS over socket files.
        let fits_scheme = |it: &Member| scheme == "http" || !it.address.starts_with("unix:");
        let is_usable = |it: &Member| fits_scheme(it) && probe::server(&url(scheme, &it.address));
        let mut servers = upstream.servers;
        servers.retain(is_usable);
        if servers.iter().all(|it| it.is_backup) {
            // Backup servers without primary servers act as primary servers.
            for server in &mut servers {
                server.is_backup = false;
            }
        }
        if servers.is_empty() {
            return Err(
                "there is no server that drip can use; this location is left out".to_owned(),
            );
        }
        let servers: Vec<String> = servers.iter().map(|it| it.toml(scheme)).collect();
        let mut section = Section {
            comments: upstream.section.comments,
            fields: vec![("servers", format!("[{}]", servers.join(", ")))],
            ..Section::default()
        };
        if scheme == "https" {
            let what = "drip verifies the certificate of the origin; nginx does so only with proxy_ssl_verify";
            note(pass, what);
        }
        let timeout = |name| scope.get(name).and_then(read_time);
        if let Some(timeout) = timeout("proxy_connect_timeout") {
            section.add_duration("connect_timeout", timeout);
        }
        if let Some(max_in_flight) = connections.max_in_flight {
            section.add_number("max_in_flight", max_in_flight);
        }
        let counting_server = connections.is_by_server.then_some(server.index);
        section.fields.extend(upstream.section.fields);
        if let Some(host) = host(upstream_name, server.host, scope) {
            section.add_text("host", &host);
        }
        let response_timeout = timeout("proxy_read_timeout");
        let tables = &mut self.tables;
        let (origin, response_timeout) =
            tables.find_or_add(section, counting_server, authority, response_timeout);
        Ok(Target {
            origin,
            prefix,
            response_timeout,
        })
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
fn added_prefix(path: Option<&str>, uri: &str) -> Result<Option<String>, String> {
    match path {
        _ if uri.is_empty() => Ok(None),
        Some(path) if path == uri => Ok(None),
        Some(path) if probe::rewrite(path, uri) => Ok(Some(uri.to_owned())),
        _ => Err(format!(
            "{uri} is no prefix that drip can put before a path; this location is left out"
        )),
    }
}

/// Splits the part of a URL after `://` into the address and the URI.
fn split_uri(rest: &str) -> (&str, &str) {
    if let Some(socket) = rest.strip_prefix("unix:") {
        let end = socket.find(':').unwrap_or(socket.len());
        let uri = socket[end..].strip_prefix(':').unwrap_or_default();
        return (&rest[..end + "unix:".len()], uri);
    }
    rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()))
}

/// Returns the `host` of an origin for `proxy_set_header Host`.
///
/// Returns `None` for drip's default, which is the host of the client.
fn host(upstream_name: Option<&str>, server_name: Option<&str>, scope: &Scope) -> Option<String> {
    let mut fields = scope.all("proxy_set_header").into_iter();
    let field = fields.find(|field| field.arg(0).eq_ignore_ascii_case("host"));
    // nginx sends the name of the upstream, or the host of the only server, if nothing is set.
    let name = upstream_name.filter(|it| probe::origin_host(it) && *it != "preserve");
    let nginx_default = name.unwrap_or("origin").to_owned();
    let Some(field) = field else {
        return Some(nginx_default);
    };
    let value = field.arg(1);
    match value {
        "$host" | "$http_host" => None,
        "$proxy_host" => Some(nginx_default),
        "$server_name" => Some(server_name.map_or(nginx_default, str::to_owned)),
        literal if probe::origin_host(literal) && !["preserve", "origin"].contains(&literal) => {
            Some(literal.to_owned())
        }
        _ => {
            field.at.note(format!("proxy_set_header Host {value}: drip cannot build this value; the client's Host is kept"));
            None
        }
    }
}
