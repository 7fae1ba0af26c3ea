//! Builds the routes of each host, with paths compared as ingress-nginx compares them.

use super::hosts::{Host, HostPath};
use super::origins::Origins;
use super::policy::Policy;
use super::rewrite::{self, Rewrite};
use crate::import::notes::SourceLocation;
use crate::import::translate::precedence::is_whole;
use crate::import::translate::route::{Action, Location, Pattern};
use crate::import::translate::virtual_hosts::{covering, of_hosts};
use crate::import::translate::{expression, probe};

/// Returns the routes of all hosts; `None` if there are more than `most`.
pub(super) fn plan<'n>(
    hosts: &'n [Host<'n>],
    policies: &[Policy],
    origins: &mut Origins,
    most: usize,
) -> Option<Vec<Vec<Location<'n>>>> {
    let is_there = |name: Option<&str>| hosts.iter().any(|it| it.name.as_deref() == name);
    let mut all: Vec<Vec<Location>> = Vec::new();
    for host in hosts {
        let mut own: Vec<Location> = Vec::new();
        let paths = match host.regex_of {
            Some(ingress) => expressions(host, ingress, policies),
            None => plain_paths(host),
        };
        for (pattern, path, rewrite) in paths {
            if own.iter().any(|it| it.pattern == pattern) {
                continue;
            }
            let (at, before) = (path.at, path.at.notes.count());
            if !probe::path(&pattern.path()) {
                let path = path.path;
                at.note(format!("no route can have the path {path}: its requests go to the next route that matches"));
                continue;
            }
            let action = match rewrite {
                Ok((strip, add)) => origins.action(host, path, strip, add),
                Err(status) => Action::Refuse(status),
            };
            let mut comments = origins.comments(path.ingress);
            comments.extend(at.notes.since(before));
            own.push(Location {
                pattern,
                action,
                comments,
                at,
            });
        }
        let is_covered = host.name.as_deref().is_some_and(|name| {
            is_there(None) || covering(name).any(|wildcard| is_there(Some(&wildcard)))
        });
        // Requests for a path that this host lacks must not match routes of hosts that cover it.
        if is_covered && !own.iter().any(is_whole) {
            let refuse = Action::Refuse(404);
            own.push(Location::new(Pattern::prefix("/"), refuse, host.at));
        }
        all.push(own);
    }
    let mut any: &[Location] = &[];
    let mut named: Vec<(&str, &[Location])> = Vec::new();
    for (host, own) in hosts.iter().zip(&all) {
        match &host.name {
            Some(name) => named.push((name, own)),
            None => any = own,
        }
    }
    let mut routes = of_hosts(any, &named, most)?.into_iter();
    let of = |host: &Host| match host.name {
        Some(_) => routes.next().unwrap_or_default(),
        None => any.to_vec(),
    };
    Some(hosts.iter().map(of).collect())
}

/// A path with its pattern, and either its removed and added prefixes or the status of refusal.
type Planned<'h> = (Pattern, &'h HostPath<'h>, Result<Prefixes, u16>);
type Prefixes = (Option<String>, Option<String>);

/// Plans the paths of a host that has no regular expressions.
fn plain_paths<'h>(host: &'h Host) -> Vec<Planned<'h>> {
    let exact = host.paths.iter().filter(|it| it.is_exact);
    let exact = exact.map(|it| (Pattern::Exact(it.path.to_owned()), it));
    let prefixes = host.paths.iter().filter(|it| !it.is_exact);
    // `/foo` is a prefix of `/foo` and `/foo/bar`, and not of `/foobar`.
    let prefixes = prefixes.flat_map(|path| {
        let base = path.path.trim_end_matches('/');
        let alone = (!base.is_empty()).then(|| Pattern::Exact(base.to_owned()));
        let both = alone
            .into_iter()
            .chain([Pattern::prefix(format!("{base}/"))]);
        both.map(move |pattern| (pattern, path))
    });
    let all = exact.chain(prefixes);
    all.map(|(pattern, path)| (pattern, path, Ok((None, None))))
        .collect()
}

/// Plans the paths of a host on which ingress-nginx treats all paths as regular expressions.
///
/// The expressions ignore case and have no end anchor, even for paths of type Exact or Prefix.
/// The longest expression is compared first.
fn expressions<'h>(host: &'h Host, regex_of: usize, policies: &[Policy]) -> Vec<Planned<'h>> {
    let is_plain = |it: &HostPath| it.ingress != regex_of && !has_signs(it.path);
    if let Some(other) = host.paths.iter().find(|it| it.is_exact || is_plain(it)) {
        other.at.note(format!("{}: ingress-nginx treats all paths of this host as regular expressions that ignore case and have no end, because of rewrite-target or use-regex; so do these routes. Write the paths without regex: to compare them by their pathType", host.shown()));
    }
    let mut paths: Vec<&HostPath> = host.paths.iter().collect();
    paths.sort_by(|a, b| (b.path.len(), b.path).cmp(&(a.path.len(), a.path)));
    let planned = paths.into_iter().map(|it| {
        let (text, rewrite) = expression(it.path, it.at, &policies[it.ingress]);
        (Pattern::Regex(text), it, rewrite)
    });
    planned.collect()
}

fn has_signs(path: &str) -> bool {
    path.contains(['(', '[', '*', '+', '?', '$', '\\', '|', '^', '{'])
}

/// Returns the regular expression of a path, and its rewrite.
fn expression(path: &str, at: SourceLocation, policy: &Policy) -> (String, Result<Prefixes, u16>) {
    let target = policy.rewrite_target.as_ref();
    let mut rewrite = Ok((None, None));
    if let Some(target) = target.filter(|target| *target != path) {
        match rewrite::read(path, target) {
            Ok(Rewrite { regex, strip, add }) => {
                if strip.is_some() {
                    at.note(format!("the path {path} is compared with its case, because strip_prefix is; ingress-nginx ignores case"));
                }
                return (regex, Ok((strip, add)));
            }
            Err(why) => {
                at.note(format!("rewrite-target {target} of the path {path} is not translated, so requests get 503: {why}"));
                rewrite = Err(503);
            }
        }
    }
    if path == "/" {
        return ("^/".to_owned(), rewrite);
    }
    if let Some(text) = expression::translate(&format!("^{path}"), true) {
        return (text, rewrite);
    }
    let plain = |c: &char| c.is_ascii_alphanumeric() || "/_~-".contains(*c);
    let begin: String = path.chars().take_while(plain).collect();
    at.note(format!("the path {path} is no regular expression of drip, so requests for {begin} and what is below get 503; write it as path of a route"));
    (format!("(?i)^{}", regex::escape(&begin)), Err(503))
}
