//! Builds the routes of each host, with paths compared as ingress-nginx compares them.
//!
//! ingress-nginx finds the host first. In drip, wildcards such as `*.a.test` and the routes for all
//! hosts cover a host, and may have a better path. So a covered host also gets routes for paths
//! that it does not have.

use super::hosts::{Host, HostPath};
use super::origins::Origins;
use super::policy::Policy;
use super::rewrite::{self, Prefixes, Rewrite};
use crate::import::translate::precedence::takes_every_path;
use crate::import::translate::route::{Action, Location, Pattern};
use crate::import::translate::virtual_hosts::{covering, routes_by_host};
use crate::import::translate::{expression, probe};

/// A path of a host, with the pattern of its route.
struct PlannedPath<'h> {
    pattern: Pattern,
    path: &'h HostPath<'h>,
    /// Prefixes to remove and add, or the status with which requests are refused.
    rewrite: Result<Prefixes, u16>,
}

/// Returns the routes of all hosts; `None` if there are too many.
pub(super) fn plan<'n>(
    hosts: &'n [Host<'n>],
    policies: &[Policy],
    origins: &mut Origins,
) -> Option<Vec<Vec<Location<'n>>>> {
    // The routes of each host, in the order of `hosts`.
    let mut by_host: Vec<Vec<Location>> = Vec::new();
    for host in hosts {
        let paths = match host.regex_ingress {
            Some(ingress) => regex_paths(host, ingress, policies),
            None => plain_paths(host),
        };
        let mut own: Vec<Location> = Vec::new();
        for planned in paths {
            // The first of two equal patterns counts.
            if !own.iter().any(|it| it.pattern == planned.pattern) {
                own.extend(route(host, planned, origins));
            }
        }
        // Requests for a path that this host lacks must not match routes of hosts that cover it.
        if is_covered(host, hosts) && !own.iter().any(takes_every_path) {
            let refuse = Action::Refuse(404);
            own.push(Location::new(Pattern::prefix("/"), refuse, host.at));
        }
        by_host.push(own);
    }
    let mut default_routes: &[Location] = &[];
    let mut named: Vec<(&str, &[Location])> = Vec::new();
    for (host, own) in hosts.iter().zip(&by_host) {
        match &host.name {
            Some(name) => named.push((name, own)),
            None => default_routes = own,
        }
    }
    let mut routes = routes_by_host(default_routes, &named)?.into_iter();
    let routes_of = |host: &Host| match host.name {
        Some(_) => routes.next().unwrap_or_default(),
        None => default_routes.to_vec(),
    };
    Some(hosts.iter().map(routes_of).collect())
}

/// Returns whether other hosts, such as wildcards, cover a host.
fn is_covered(host: &Host, hosts: &[Host]) -> bool {
    let exists = |name: Option<&str>| hosts.iter().any(|host| host.name.as_deref() == name);
    let Some(name) = &host.name else {
        return false;
    };
    // The host without a name covers all others.
    exists(None) || covering(name).any(|wildcard| exists(Some(&wildcard)))
}

/// Builds the route of a path; `None` if no route can have the path, which is noted.
fn route<'n>(host: &Host, planned: PlannedPath<'n>, origins: &mut Origins) -> Option<Location<'n>> {
    let PlannedPath {
        pattern,
        path,
        rewrite,
    } = planned;
    let (at, notes_before) = (path.at, path.at.notes.count());
    if !probe::path(&pattern.route_path()) {
        let path = path.path;
        at.note(format!(
            "no route can have the path {path}: its requests go to the next route that matches"
        ));
        return None;
    }
    let action = match rewrite {
        Ok(prefixes) => origins.action(host, path, prefixes),
        Err(status) => Action::Refuse(status),
    };
    let mut comments = origins.take_comments(path.ingress);
    comments.extend(at.notes.since(notes_before));
    Some(Location {
        pattern,
        action,
        comments,
        at,
    })
}

/// Plans the paths of a host that has no regular expressions.
fn plain_paths<'h>(host: &'h Host) -> Vec<PlannedPath<'h>> {
    let planned = |path, pattern| PlannedPath {
        pattern,
        path,
        rewrite: Ok(Prefixes::default()),
    };
    let (exact, prefixes): (Vec<_>, Vec<_>) = host.paths.iter().partition(|it| it.is_exact);
    let exact = exact.into_iter();
    let mut paths: Vec<PlannedPath> = exact
        .map(|path| planned(path, Pattern::Exact(path.path.to_owned())))
        .collect();
    for path in prefixes {
        // `/foo` is a prefix of `/foo` and `/foo/bar`, and not of `/foobar`.
        let base = path.path.trim_end_matches('/');
        if !base.is_empty() {
            paths.push(planned(path, Pattern::Exact(base.to_owned())));
        }
        paths.push(planned(path, Pattern::prefix(format!("{base}/"))));
    }
    paths
}

/// Plans the paths of a host on which ingress-nginx treats all paths as regular expressions.
///
/// The expressions ignore case and have no end anchor, even for paths of type Exact or Prefix.
/// The longest expression is compared first. `regex_ingress`: the Ingress that causes this.
fn regex_paths<'h>(
    host: &'h Host,
    regex_ingress: usize,
    policies: &[Policy],
) -> Vec<PlannedPath<'h>> {
    let is_plain = |it: &HostPath| it.ingress != regex_ingress && !has_regex_characters(it.path);
    if let Some(other) = host.paths.iter().find(|it| it.is_exact || is_plain(it)) {
        other.at.note(format!("{}: ingress-nginx treats all paths of this host as regular expressions that ignore case and have no end, because of rewrite-target or use-regex; so do these routes. Write the paths without regex: to compare them by their pathType", host.shown()));
    }
    let mut paths: Vec<&HostPath> = host.paths.iter().collect();
    paths.sort_by(|a, b| (b.path.len(), b.path).cmp(&(a.path.len(), a.path)));
    let planned = paths.into_iter().map(|path| {
        let (text, rewrite) = path_expression(path, &policies[path.ingress]);
        PlannedPath {
            pattern: Pattern::Regex(text),
            path,
            rewrite,
        }
    });
    planned.collect()
}

/// Returns whether a path has special characters of regular expressions.
fn has_regex_characters(path: &str) -> bool {
    path.contains(['(', '[', '*', '+', '?', '$', '\\', '|', '^', '{'])
}

/// Returns the regular expression of a path, and its rewrite or the status of refusal.
fn path_expression(host_path: &HostPath, policy: &Policy) -> (String, Result<Prefixes, u16>) {
    let (path, at) = (host_path.path, host_path.at);
    let mut rewrite = Ok(Prefixes::default());
    if let Some(target) = &policy.rewrite_target
        && target != path
    {
        match rewrite::read(path, target) {
            Ok(Rewrite { regex, prefixes }) => {
                if prefixes.strip.is_some() {
                    at.note(format!("the path {path} is compared with its case, because strip_prefix is; ingress-nginx ignores case"));
                }
                return (regex, Ok(prefixes));
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
    // Only the start of the path is certain, so everything below it is refused.
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || "/_~-".contains(*c);
    let start: String = path.chars().take_while(is_plain).collect();
    at.note(format!("the path {path} is no regular expression of drip, so requests for {start} and what is below get 503; write it as path of a route"));
    (format!("(?i)^{}", regex::escape(&start)), Err(503))
}
