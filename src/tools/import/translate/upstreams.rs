//! Translates `upstream` blocks: named groups of servers.
//!
//! An upstream becomes an origin. nginx has some settings for each server, such as `max_fails`;
//! drip has one for the whole origin.

use std::collections::HashMap;
use std::time::Duration;

use config::{toml_string, toml_text};

use super::directives;
use super::limits::MAX_IN_FLIGHT;
use super::listen::with_port;
use super::page::Section;
use super::probe;
use super::scope::named;
use crate::import::tree::Directive;
use crate::import::values;

/// An `upstream`: a group of servers.
#[derive(Clone, Default)]
pub(super) struct Upstream {
    pub(super) servers: Vec<Member>,
    /// Fields and comments for the origin's table.
    pub(super) section: Section,
}

/// Returns all upstreams by name. Later definitions of the same name are left out.
pub(super) fn read(http: &[Directive]) -> HashMap<String, Upstream> {
    let mut upstreams = HashMap::new();
    for directive in named(http, "upstream") {
        let name = directive.args.first().cloned().unwrap_or_default();
        if name.is_empty() {
            directive.at.note("upstream has no name; it is left out");
            continue;
        }
        if upstreams.contains_key(&name) {
            let what = format!("upstream {name} is defined already; this one is left out");
            directive.at.note(what);
            continue;
        }
        upstreams.insert(name, read_upstream(directive));
    }
    upstreams
}

/// A server of an upstream.
#[derive(Clone, Default)]
pub(super) struct Member {
    /// Address without a scheme.
    pub(super) address: String,
    /// `None`: the default, 1.
    weight: Option<u32>,
    /// Whether it gets requests only if no other server can take them.
    pub(super) is_backup: bool,
    is_down: bool,
    /// `None`: no limit.
    max_in_flight: Option<u32>,
}

impl Member {
    /// Returns a server of which only the address is known.
    pub(super) fn of_address(address: String) -> Self {
        Self {
            address,
            ..Self::default()
        }
    }

    /// Returns the entry of `servers` in TOML: the URL, or a table if there are further fields.
    pub(super) fn toml(&self, scheme: &str) -> String {
        let url = toml_text(&url(scheme, &self.address));
        let mut fields = vec![format!("url = {url}")];
        fields.extend(self.weight.map(|weight| format!("weight = {weight}")));
        fields.extend(self.is_backup.then(|| "backup = true".to_owned()));
        fields.extend(
            self.max_in_flight
                .map(|count| format!("max_in_flight = {count}")),
        );
        match fields.len() {
            1 => url,
            _ => format!("{{ {} }}", fields.join(", ")),
        }
    }
}

/// Reads a server of an upstream; `None` if it has no address.
///
/// Adds to `section`, the table of the origin, the fields that drip has for all servers together.
fn read_member(directive: &Directive, section: &mut Section) -> Option<Member> {
    let at = directive.at;
    let Some((address, args)) = directive.args.split_first() else {
        at.note("server has no address; it is left out");
        return None;
    };
    let address = address
        .strip_prefix("unix:")
        .map_or_else(|| with_port(address), |path| format!("unix:{path}"));
    let mut member = Member::of_address(address);
    let mut origin_section = Section::default();
    for arg in args {
        let (name, value) = arg.split_once('=').unwrap_or((arg, ""));
        match (name, values::whole(value), values::time(value)) {
            ("weight", Some(1), _) | ("resolve", ..) => {}
            ("weight", Some(weight @ 1..=65_535), _) => member.weight = Some(weight),
            // In nginx 0 means that the server is never taken out.
            ("max_fails", Some(0), _) => origin_section.add_number("max_fails", u32::MAX),
            ("max_fails", Some(count), _) => origin_section.add_number("max_fails", count),
            ("fail_timeout", _, Some(span)) if !span.is_zero() => {
                origin_section.add_duration("fail_timeout", span);
            }
            // In nginx 0 means no limit.
            ("max_conns", Some(count), _) => {
                member.max_in_flight = Some(count.min(MAX_IN_FLIGHT)).filter(|it| *it > 0);
            }
            ("backup", ..) => member.is_backup = true,
            ("down", ..) => member.is_down = true,
            _ => at.note(format!("server: {arg} is not translated")),
        }
    }
    for (name, value) in origin_section.fields {
        match section.fields.iter().find(|(known, _)| *known == name) {
            Some((_, known)) if *known == value => {}
            Some(_) => at.note(format!("{name} differs between servers, and drip has one value for all servers of an origin; that of the first is used")),
            None => section.fields.push((name, value)),
        }
    }
    Some(member)
}

/// Reads an `upstream` block. Notes what is left out.
fn read_upstream(directive: &Directive) -> Upstream {
    let (block, notes) = (directive.inside(), directive.at.notes);
    let notes_before = notes.count();
    let mut upstream = Upstream::default();
    for directive in named(block, "server") {
        let at = directive.at;
        let Some(member) = read_member(directive, &mut upstream.section) else {
            continue;
        };
        let address = &member.address;
        if member.is_down {
            at.note("a server that is down is left out");
        } else if !probe::server(&url("http", address)) {
            let what = format!("\"{address}\" is not an address that drip can use; it is left out");
            at.note(what);
        } else if upstream.servers.iter().any(|it| it.address == *address) {
            at.note(format!("{address} is listed already"));
        } else {
            upstream.servers.push(member);
        }
    }
    if let Some(directive) = named(block, "ip_hash").next() {
        directive.at.note("ip_hash is translated to a hash of the whole address, and nginx hashes the first three numbers of IPv4: clients change their servers once");
        let balance = toml_string("hash:$remote_addr");
        upstream.section.fields.push(("balance", balance));
    }
    add_keep_alive(&mut upstream.section, block);
    directives::note_unknown(block);
    upstream.section.comments = notes.since(notes_before);
    upstream
}

/// Adds the number of idle connections that are kept, and their timeout.
fn add_keep_alive(section: &mut Section, block: &[Directive]) {
    if let Some(directive) = named(block, "keepalive").next() {
        match values::whole(directive.arg(0)) {
            Some(count) => section.add_number("keep_alive", count),
            None => directive
                .at
                .note("keepalive is a whole number; the default is used"),
        }
    }
    let directive = named(block, "keepalive_timeout").next();
    if let Some(span) = directive.and_then(read_time) {
        section.add_duration("keep_alive_timeout", span);
    }
}

/// Returns the time of a directive. Notes a time that drip does not accept, such as 0.
pub(super) fn read_time(directive: &Directive) -> Option<Duration> {
    let text = directive.arg(0);
    let span = values::time(text).filter(|span| !span.is_zero());
    if span.is_none() {
        let name = &directive.name;
        directive.at.note(format!(
            "{name}: \"{text}\" is not a time that drip accepts; the default is used"
        ));
    }
    span
}

/// Returns the URL of an address. That of a socket file has no scheme.
pub(super) fn url(scheme: &str, address: &str) -> String {
    if address.starts_with("unix:") {
        address.to_owned()
    } else {
        format!("{scheme}://{address}")
    }
}
