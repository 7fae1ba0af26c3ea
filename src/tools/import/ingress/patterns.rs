//! The routes' paths of each host, as ingress-nginx compares them.

use super::hosts::{Host, Location};
use super::policy::Policy;
use super::rewrite::{self, Rewrite};
use crate::import::notes::{Notes, Place};
use crate::import::translate::precedence::is_whole;
use crate::import::translate::route::{self, Pattern, Refuses};
use crate::import::translate::virtual_hosts::{covering, of_hosts};
use crate::import::translate::{expression, probe};

/// A path of a route, and what it is for.
pub(super) type Planned<'h> = route::Location<Action<'h>>;

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

impl Refuses for Action<'_> {
    fn refuses(&self) -> bool {
        matches!(self, Self::Refuse(_))
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
    let is_there = |name: Option<&str>| hosts.iter().any(|it| it.name.as_deref() == name);
    let mut all: Vec<Vec<Planned>> = Vec::new();
    for host in hosts {
        let mut own = match host.regex_of {
            Some(ingress) => expressions(host, ingress, policies, notes),
            None => paths(host, notes),
        };
        let is_covered = host.name.as_deref().is_some_and(|name| {
            is_there(None) || covering(name).any(|wildcard| is_there(Some(&wildcard)))
        });
        // Requests for paths that it does not have are not those of the hosts that cover it.
        if is_covered && !own.iter().any(is_whole) {
            own.push(planned(prefix("/"), Action::Refuse(404), host.place));
        }
        all.push(own);
    }
    let mut any: &[Planned] = &[];
    let mut named: Vec<(&str, &[Planned])> = Vec::new();
    for (host, own) in hosts.iter().zip(&all) {
        match &host.name {
            Some(name) => named.push((name, own)),
            None => any = own,
        }
    }
    let mut routes = of_hosts(any, &named, most, notes)?.into_iter();
    let of = |host: &Host| match host.name {
        Some(_) => routes.next().unwrap_or_default(),
        None => any.to_vec(),
    };
    Some(hosts.iter().map(of).collect())
}

fn planned(pattern: Pattern, action: Action, place: Place) -> Planned {
    Planned {
        pattern,
        action,
        comments: Vec::new(),
        place,
    }
}

fn prefix(path: impl Into<String>) -> Pattern {
    Pattern::Prefix {
        path: path.into(),
        stops: false,
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
        let below = prefix(format!("{base}/"));
        let both = alone.into_iter().chain([below]);
        both.map(move |pattern| (pattern, location))
    });
    for (pattern, location) in exact.chain(prefixes) {
        if planned.iter().any(|it| it.pattern == pattern) {
            continue;
        }
        let new = self::planned(pattern, Action::of(location), location.place);
        if probe::path(&new.path()) {
            planned.push(new);
        } else {
            let path = &location.path;
            notes.add(location.place, format!("the path {path} cannot be that of a route; its requests go to the route that matches otherwise"));
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
                let action = Action::Location {
                    location,
                    strip,
                    add,
                };
                return planned(Pattern::Regex(regex), action, place);
            }
            Err(why) => {
                notes.add(place, format!("rewrite-target {target} of the path {path} is not translated, so requests get 503: {why}"));
                refused = Some(Action::Refuse(503));
            }
        }
    }
    if path == "/" {
        let action = refused.unwrap_or(Action::of(location));
        return planned(Pattern::Regex("^/".to_owned()), action, place);
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
    planned(Pattern::Regex(text), refused.unwrap_or(action), place)
}
