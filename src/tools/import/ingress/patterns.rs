//! The routes' paths of each host, so that each host has exactly its own.
//!
//! drip chooses a path first, and the host among the routes of one path. So a host whose requests
//! routes of another one could take, such as those for any host, gets copies of its own locations
//! at the paths of these. With regular expressions drip chooses the host first: then all paths of
//! such hosts are written as regular expressions, and no copies are needed.

use std::cmp::Reverse;

use super::hosts::{Host, Location};
use super::policy::Policy;
use super::rewrite::{self, Rewrite};
use crate::import::notes::Notes;
use crate::import::translate::{expression, probe};

/// A path of a route, and what it is for.
#[derive(Clone)]
pub(super) struct Planned<'h> {
    pub(super) pattern: Pattern,
    pub(super) action: Action<'h>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    Exact(String),
    Prefix(String),
    Regex(String),
}

/// What happens to requests.
#[derive(Clone)]
pub(super) enum Action<'h> {
    Location {
        location: &'h Location,
        strip: Option<String>,
        add: Option<String>,
    },
    Refuse(u16),
}

impl Pattern {
    /// The path in the form of a route.
    pub(super) fn path(&self) -> String {
        match self {
            Self::Exact(path) => format!("= {path}"),
            Self::Prefix(path) => path.clone(),
            Self::Regex(text) => format!("regex:{text}"),
        }
    }
}

impl<'h> Action<'h> {
    fn of(location: &'h Location) -> Self {
        Self::Location {
            location,
            strip: None,
            add: None,
        }
    }
}

/// The paths of all hosts; `None` if there are more than `most`.
pub(super) fn plan<'h>(
    hosts: &'h [Host],
    policies: &[Policy],
    most: usize,
    notes: &mut Notes,
) -> Option<Vec<Vec<Planned<'h>>>> {
    let covering = covering(hosts);
    let are_regex = regex_hosts(hosts, &covering);
    let mut all: Vec<Vec<Planned>> = Vec::new();
    for (index, host) in hosts.iter().enumerate() {
        let mut own = match (host.regex_of, are_regex[index]) {
            (Some(ingress), _) => expressions(host, ingress, policies, notes),
            (None, true) => as_expressions(host),
            (None, false) => paths(host, notes),
        };
        let is_whole = |it: &Planned| {
            let wholes = [
                Pattern::Prefix("/".to_owned()),
                Pattern::Regex("^/".to_owned()),
            ];
            wholes.contains(&it.pattern)
        };
        // Requests for paths that it does not have are not those of the hosts that cover it.
        if !covering[index].is_empty() && !own.iter().any(is_whole) {
            let pattern = if are_regex[index] {
                Pattern::Regex("^/".to_owned())
            } else {
                Pattern::Prefix("/".to_owned())
            };
            own.push(Planned {
                pattern,
                action: Action::Refuse(404),
            });
        }
        all.push(own);
    }
    let mut count: usize = all.iter().map(Vec::len).sum();
    for index in 0..hosts.len() {
        if are_regex[index] {
            continue;
        }
        let mut copies: Vec<Planned> = Vec::new();
        for other in &covering[index] {
            for Planned { pattern, .. } in &all[*other] {
                let mut known = all[index].iter().chain(&copies);
                if known.any(|it| it.pattern == *pattern) {
                    continue;
                }
                if let Some(best) = best(&all[index], pattern) {
                    copies.push(Planned {
                        pattern: pattern.clone(),
                        action: best.action.clone(),
                    });
                }
            }
            if count + copies.len() > most {
                return None;
            }
        }
        count += copies.len();
        all[index].extend(copies);
    }
    (count <= most).then_some(all)
}

/// The hosts whose routes may take requests of each host.
fn covering(hosts: &[Host]) -> Vec<Vec<usize>> {
    let is_general = |host: &Host| host.name.as_ref().is_none_or(|name| name.starts_with('*'));
    let general = (0..hosts.len()).filter(|index| is_general(&hosts[*index]));
    let general: Vec<usize> = general.collect();
    let of = |host: &Host| {
        let all = general.iter().copied();
        all.filter(|index| hosts[*index].covers(host)).collect()
    };
    hosts.iter().map(of).collect()
}

/// Which hosts have regular expressions only: those with one, and all that overlap with these.
fn regex_hosts(hosts: &[Host], covering: &[Vec<usize>]) -> Vec<bool> {
    let mut are_regex: Vec<bool> = hosts.iter().map(|it| it.regex_of.is_some()).collect();
    loop {
        let mut has_changed = false;
        for index in 0..hosts.len() {
            let is_any = are_regex[index] || covering[index].iter().any(|it| are_regex[*it]);
            for other in std::iter::once(&index).chain(&covering[index]) {
                has_changed |= is_any && !are_regex[*other];
                are_regex[*other] |= is_any;
            }
        }
        if !has_changed {
            return are_regex;
        }
    }
}

/// The paths of a host without regular expressions.
fn paths<'h>(host: &'h Host, notes: &mut Notes) -> Vec<Planned<'h>> {
    let mut planned: Vec<Planned> = Vec::new();
    let exact = host.locations.iter().filter(|it| it.is_exact);
    let exact = exact.map(|it| (Pattern::Exact(it.path.clone()), it));
    let prefixes = host.locations.iter().filter(|it| !it.is_exact);
    // `/foo` is a prefix of `/foo` and `/foo/bar`, and not of `/foobar`.
    let prefixes = prefixes.flat_map(|location| {
        let base = location.path.trim_end_matches('/');
        let alone = (!base.is_empty()).then(|| Pattern::Exact(base.to_owned()));
        let below = Pattern::Prefix(format!("{base}/"));
        let both = alone.into_iter().chain([below]);
        both.map(move |pattern| (pattern, location))
    });
    for (pattern, location) in exact.chain(prefixes) {
        if planned.iter().any(|it| it.pattern == pattern) {
            continue;
        }
        if probe::path(&pattern.path()) {
            planned.push(Planned {
                pattern,
                action: Action::of(location),
            });
        } else {
            let path = &location.path;
            notes.add(location.place, format!("the path {path} cannot be that of a route; its requests go to the route that matches otherwise"));
        }
    }
    planned
}

/// The same paths as regular expressions.
fn as_expressions(host: &Host) -> Vec<Planned<'_>> {
    let base = |it: &Location| it.path.trim_end_matches('/').to_owned();
    let mut locations: Vec<&Location> = host.locations.iter().collect();
    locations.sort_by_key(|it| (!it.is_exact, Reverse(base(it).len())));
    let mut planned: Vec<Planned> = Vec::new();
    for location in locations {
        let text = match (location.is_exact, &*base(location)) {
            (true, _) => format!("^{}\\z", regex::escape(&location.path)),
            (false, "") => "^/".to_owned(),
            (false, base) => format!("^{}(/|\\z)", regex::escape(base)),
        };
        // `/foo` and `/foo/` are the same prefix.
        let pattern = Pattern::Regex(text);
        if !planned.iter().any(|it| it.pattern == pattern) {
            planned.push(Planned {
                pattern,
                action: Action::of(location),
            });
        }
    }
    planned
}

/// The paths of a host whose paths ingress-nginx takes all for regular expressions.
///
/// They ignore case and have no end, also where the type of the path is Exact or Prefix. The
/// longest is compared first.
fn expressions<'h>(
    host: &'h Host,
    regex_of: usize,
    policies: &[Policy],
    notes: &mut Notes,
) -> Vec<Planned<'h>> {
    let is_plain = |it: &Location| it.ingress != regex_of && !has_signs(&it.path);
    if let Some(other) = host.locations.iter().find(|it| it.is_exact || is_plain(it)) {
        notes.add(other.place, format!("{}: ingress-nginx takes all paths of this host for regular expressions that ignore case and have no end, because of rewrite-target or use-regex; so do these routes. Write the paths without regex: to have them as their pathType says", host.shown()));
    }
    let mut locations: Vec<&Location> = host.locations.iter().collect();
    locations.sort_by(|a, b| (b.path.len(), &b.path).cmp(&(a.path.len(), &a.path)));
    let mut planned: Vec<Planned> = Vec::new();
    for location in locations {
        let new = expression(location, &policies[location.ingress], notes);
        if !planned.iter().any(|it| it.pattern == new.pattern) {
            planned.push(new);
        }
    }
    planned
}

fn has_signs(path: &str) -> bool {
    path.contains(['(', '[', '*', '+', '?', '$', '\\', '|', '^', '{'])
}

fn expression<'h>(location: &'h Location, policy: &Policy, notes: &mut Notes) -> Planned<'h> {
    let (path, place) = (&location.path, location.place);
    let target = policy.rewrite_target.as_ref();
    let mut refused = None;
    if let Some(target) = target.filter(|target| *target != path) {
        match rewrite::read(path, target) {
            Ok(Rewrite { regex, strip, add }) => {
                if strip.is_some() {
                    notes.add(place, format!("the path {path} is compared with its case, because strip_prefix is; ingress-nginx ignores case"));
                }
                return Planned {
                    pattern: Pattern::Regex(regex),
                    action: Action::Location {
                        location,
                        strip,
                        add,
                    },
                };
            }
            Err(why) => {
                notes.add(place, format!("rewrite-target {target} of the path {path} is not translated, so requests get 503: {why}"));
                refused = Some(Action::Refuse(503));
            }
        }
    }
    if path == "/" {
        return Planned {
            pattern: Pattern::Regex("^/".to_owned()),
            action: refused.unwrap_or(Action::of(location)),
        };
    }
    let translated = expression::translate(&format!("^{path}"), true);
    let (text, action) = if let Some(text) = translated {
        (text, Action::of(location))
    } else {
        let plain = |c: &char| c.is_ascii_alphanumeric() || "/_~-".contains(*c);
        let begin: String = path.chars().take_while(plain).collect();
        notes.add(place, format!("the path {path} is no regular expression of drip, so requests for {begin} and what is below get 503; write it as path of a route"));
        let text = format!("(?i)^{}", regex::escape(&begin));
        (text, Action::Refuse(503))
    };
    Planned {
        pattern: Pattern::Regex(text),
        action: refused.unwrap_or(action),
    }
}

/// The location of a host that takes the requests of a pattern of another host.
fn best<'p, 'h>(own: &'p [Planned<'h>], pattern: &Pattern) -> Option<&'p Planned<'h>> {
    let (Pattern::Exact(path) | Pattern::Prefix(path)) = pattern else {
        return None;
    };
    let length = |it: &&Planned| match &it.pattern {
        Pattern::Prefix(prefix) if path.starts_with(prefix.as_str()) => Some(prefix.len()),
        _ => None,
    };
    let fitting = own.iter().filter(|it| length(it).is_some());
    fitting.max_by_key(length)
}
