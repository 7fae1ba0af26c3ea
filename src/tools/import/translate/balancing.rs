//! How an upstream chooses a server, and which answers of one count as failures.

use super::definition;
use super::page::list;
use super::pass::Pass;
use super::scope::{Scope, named};
use crate::config::toml_string;
use crate::tools::import::notes::Notes;
use crate::tools::import::tree::Directive;

/// The field `balance` for `hash` and `ip_hash` of an upstream; `None` if it is drip's default.
pub(super) fn balance(block: &[Directive], notes: &mut Notes) -> Option<String> {
    if let Some(directive) = named(block, "ip_hash").next() {
        notes.add(directive.place, "ip_hash became a hash of the whole address, where nginx takes the first three numbers of IPv4; clients change their servers once");
        return Some(toml_string("hash:$remote_addr"));
    }
    let directive = named(block, "hash").next()?;
    let place = directive.place;
    let key = definition::key(directive.arg(0));
    let key = match key {
        Ok(key) if !key.is_constant() => key,
        Ok(_) => {
            notes.add(place, "hash of a text alone sends all requests to one server; drip picks the server with the fewest requests in flight");
            return None;
        }
        Err(why) => {
            notes.add(place, format!("hash is not translated: {why}; drip picks the server with the fewest requests in flight"));
            return None;
        }
    };
    notes.add(
        place,
        "hash: drip spreads the keys otherwise than nginx; keys change their servers once",
    );
    // A key has variables of its own, and none of the environment.
    Some(toml_string(&format!("hash:{key}")))
}

/// The field `fail_on` for the statuses of `proxy_next_upstream`; `None` if there are none.
pub(super) fn fail_on(pass: Pass, scope: &Scope, notes: &mut Notes) -> Option<String> {
    let name = pass.directive("next_upstream");
    let directive = scope.get(&name)?;
    // nginx counts neither of these as a failure of the server.
    let counts = |status: &&str| !["403", "404"].contains(status);
    let statuses = directive
        .args
        .iter()
        .filter_map(|arg| arg.strip_prefix("http_"));
    let statuses: Vec<String> = statuses.filter(counts).map(str::to_owned).collect();
    let others = ["off", "http_403", "http_404", "non_idempotent"];
    for arg in directive
        .args
        .iter()
        .filter(|arg| others.contains(&&***arg))
    {
        let what =
            "drip sends a request again only if it could not be sent, or its connection broke";
        notes.add(
            directive.place,
            format!("{name} {arg} is not translated: {what}"),
        );
    }
    if statuses.is_empty() {
        return None;
    }
    notes.add(directive.place, format!("{name} became fail_on: such answers count for max_fails, and the client gets them; drip sends no request again because of a status"));
    Some(list(&statuses))
}
