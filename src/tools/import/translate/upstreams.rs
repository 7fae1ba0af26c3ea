//! Translates `upstream` blocks.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use config::{toml_string, toml_text};

use super::directives;
use super::limits::MAX_IN_FLIGHT;
use super::listen::with_port;
use super::page::Section;
use super::probe;
use super::scope::named;
use crate::import::notes::Notes;
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
pub(super) fn read(http: &[Directive], notes: &mut Notes) -> HashMap<String, Upstream> {
    let mut upstreams = HashMap::new();
    for directive in named(http, "upstream") {
        let name = directive.args.first().cloned().unwrap_or_default();
        let block = directive.inside();
        if name.is_empty() {
            notes.add(directive.at, "upstream has no name; it is left out");
            continue;
        }
        match upstreams.entry(name) {
            Entry::Vacant(entry) => {
                entry.insert(upstream(block, notes));
            }
            Entry::Occupied(entry) => {
                let name = entry.key();
                let what = format!("upstream {name} is defined already; this one is left out");
                notes.add(directive.at, what);
            }
        }
    }
    upstreams
}

/// A server of an upstream.
#[derive(Clone, Default)]
pub(super) struct Member {
    /// Address without a scheme.
    pub(super) address: String,
    weight: Option<u32>,
    pub(super) is_backup: bool,
    is_down: bool,
    /// Maximum number of connections to the server.
    most: Option<u32>,
}

impl Member {
    /// Returns a server of which only the address is known.
    pub(super) fn at(address: &str) -> Self {
        Self {
            address: address.to_owned(),
            ..Self::default()
        }
    }

    /// Returns the entry of `servers` in TOML: the URL, or a table if there are further fields.
    pub(super) fn entry(&self, scheme: &str) -> String {
        let url = toml_text(&url(scheme, &self.address));
        let weight = self.weight.map(|weight| format!(", weight = {weight}"));
        let backup = self.is_backup.then(|| ", backup = true".to_owned());
        let most = self.most.map(|most| format!(", max_in_flight = {most}"));
        let more: String = [weight, backup, most].into_iter().flatten().collect();
        if more.is_empty() {
            return url;
        }
        format!("{{ url = {url}{more} }}")
    }
}

/// Values that nginx has for each server and drip only for all servers of an origin.
#[derive(Default)]
struct OfAll {
    fails: Option<u32>,
    timeout: Option<Duration>,
}

/// Reads a server of an upstream; `None` if it has no address.
fn member(directive: &Directive, of_all: &mut OfAll, notes: &mut Notes) -> Option<Member> {
    let at = directive.at;
    let Some((address, args)) = directive.args.split_first() else {
        notes.add(at, "server has no address; it is left out");
        return None;
    };
    let address = address
        .strip_prefix("unix:")
        .map_or_else(|| with_port(address), |path| format!("unix:{path}"));
    let mut member = Member {
        address,
        ..Member::default()
    };
    for arg in args {
        let (name, value) = arg.split_once('=').unwrap_or((arg, ""));
        match (name, values::whole(value), values::time(value)) {
            ("weight", Some(1), _) | ("resolve", ..) => {}
            ("weight", Some(weight @ 1..=65_535), _) => member.weight = Some(weight),
            ("max_fails", Some(count), _) => pick(&mut of_all.fails, count, arg, directive, notes),
            ("fail_timeout", _, Some(span)) if !span.is_zero() => {
                pick(&mut of_all.timeout, span, arg, directive, notes);
            }
            // In nginx 0 means no limit.
            ("max_conns", Some(count), _) => {
                member.most = Some(count.min(MAX_IN_FLIGHT)).filter(|most| *most > 0);
            }
            ("backup", ..) => member.is_backup = true,
            ("down", ..) => member.is_down = true,
            _ => notes.add(at, format!("server: {arg} is not translated")),
        }
    }
    Some(member)
}

fn upstream(block: &[Directive], notes: &mut Notes) -> Upstream {
    let before = notes.count();
    let mut upstream = Upstream::default();
    let mut of_all = OfAll::default();
    for directive in named(block, "server") {
        let at = directive.at;
        let Some(member) = member(directive, &mut of_all, notes) else {
            continue;
        };
        let address = &member.address;
        if member.is_down {
            notes.add(at, "a server that is down is left out");
        } else if !probe::server(&url("http", address)) {
            let what = format!("\"{address}\" is not an address that drip can use; it is left out");
            notes.add(at, what);
        } else if upstream.servers.iter().any(|it| it.address == *address) {
            notes.add(at, format!("{address} is listed already"));
        } else {
            upstream.servers.push(member);
        }
    }
    if let Some(balance) = balance(block, notes) {
        upstream.section.fields.push(("balance", balance));
    }
    if let Some(count) = of_all.fails {
        // In nginx 0 means that the server is never taken out.
        let count = if count == 0 { u32::MAX } else { count };
        upstream.section.count("max_fails", count);
    }
    if let Some(span) = of_all.timeout {
        upstream.section.span("fail_timeout", span);
    }
    keep_alive(&mut upstream.section, block, notes);
    directives::unknown(block, notes);
    upstream.section.comments = notes.since(before);
    upstream
}

/// Returns the field `balance` for `ip_hash`; `None` if drip's default applies.
fn balance(block: &[Directive], notes: &mut Notes) -> Option<String> {
    let directive = named(block, "ip_hash").next()?;
    notes.add(directive.at, "ip_hash became a hash of the whole address, where nginx takes the first three numbers of IPv4; clients change their servers once");
    Some(toml_string("hash:$remote_addr"))
}

/// Translates the number of idle connections that are kept, and their timeout.
fn keep_alive(section: &mut Section, block: &[Directive], notes: &mut Notes) {
    if let Some(directive) = named(block, "keepalive").next() {
        match values::whole(directive.arg(0)) {
            Some(count) => section.count("keep_alive", count),
            None => notes.add(
                directive.at,
                "keepalive is a whole number; the default is used",
            ),
        }
    }
    let directive = named(block, "keepalive_timeout").next();
    if let Some(span) = directive.and_then(|it| time(it, notes)) {
        section.span("keep_alive_timeout", span);
    }
}

/// Returns the time of a directive. Notes a time that drip does not accept, such as 0.
pub(super) fn time(directive: &Directive, notes: &mut Notes) -> Option<Duration> {
    let text = directive.arg(0);
    let span = values::time(text).filter(|span| !span.is_zero());
    if span.is_none() {
        let why = "is not a time that drip accepts; the default is used";
        let what = format!("{}: \"{text}\" {why}", directive.name);
        notes.add(directive.at, what);
    }
    span
}

/// Uses the first server's value for all servers.
fn pick<T: PartialEq>(
    of_all: &mut Option<T>,
    own: T,
    arg: &str,
    directive: &Directive,
    notes: &mut Notes,
) {
    if of_all.as_ref().is_some_and(|of_all| *of_all != own) {
        let why = "drip has one value for all servers of an origin; that of the first is used";
        notes.add(directive.at, format!("{arg}: {why}"));
    }
    of_all.get_or_insert(own);
}

pub(super) fn url(scheme: &str, address: &str) -> String {
    if address.starts_with("unix:") {
        address.to_owned()
    } else {
        format!("{scheme}://{address}")
    }
}
