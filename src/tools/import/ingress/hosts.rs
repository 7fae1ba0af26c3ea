//! The hosts of all Ingresses, each with its paths, as ingress-nginx makes servers of them.

use std::collections::{HashMap, HashSet};

use super::object::{Backend, Ingress};
use super::policy::Policy;
use crate::import::notes::{Notes, Place};
use crate::import::translate::probe;

/// A host with the paths of all Ingresses that name it.
pub(super) struct Host {
    /// `None`: all hosts that have no rule.
    pub(super) name: Option<String>,
    pub(super) place: Place,
    pub(super) locations: Vec<Location>,
    /// The Ingress whose annotations make all paths regular expressions.
    pub(super) regex_of: Option<usize>,
    /// The status of all requests.
    pub(super) refuse: Option<u16>,
    /// The Ingress that names it first.
    first: usize,
    known: HashSet<(String, bool)>,
}

/// A path of a host.
#[derive(Clone)]
pub(super) struct Location {
    pub(super) path: String,
    pub(super) is_exact: bool,
    /// Index of the Ingress.
    pub(super) ingress: usize,
    pub(super) backend: Backend,
    pub(super) place: Place,
}

/// Finds the hosts; `is_used`: the Ingresses that are no canaries.
pub(super) fn hosts(ingresses: &[Ingress], policies: &[Policy], notes: &mut Notes) -> Vec<Host> {
    let mut hosts = Hosts::default();
    for (index, ingress) in ingresses.iter().enumerate() {
        for rule in &ingress.rules {
            if let Some(name) = &rule.host
                && !probe::host(name)
            {
                let shown = ingress.shown();
                notes.add(rule.place, format!("Ingress {shown}: {name} is no host that a route can have; its paths are left out"));
                continue;
            }
            let host = hosts.of(rule.host.as_deref(), rule.place, index);
            for path in &rule.paths {
                let location = Location {
                    path: path.path.clone(),
                    is_exact: path.is_exact,
                    ingress: index,
                    backend: path.backend.clone(),
                    place: path.place,
                };
                host.add(location, &ingress.shown(), notes);
            }
            if host.refuse.is_none() {
                host.refuse = policies[index].refuse_hosts;
            }
        }
        if let Some(default) = ingress
            .default
            .as_ref()
            .filter(|_| ingress.rules.is_empty())
        {
            let host = hosts.of(None, default.place, index);
            host.add(root(default, index), &ingress.shown(), notes);
        }
    }
    for host in &mut hosts.all {
        // Only the Ingress that names a host first gives it a default.
        let first = &ingresses[host.first];
        let default = first.default.as_ref().filter(|_| host.name.is_some());
        if let Some(default) = default.filter(|_| !host.has_root()) {
            host.locations.push(root(default, host.first));
        }
        let makes_regex = |location: &&Location| {
            let policy = &policies[location.ingress];
            let target = policy.rewrite_target.as_ref();
            policy.uses_regex || target.is_some_and(|target| *target != location.path)
        };
        let regex_of = host.locations.iter().find(makes_regex);
        host.regex_of = regex_of.map(|location| location.ingress);
    }
    hosts.all
}

#[derive(Default)]
struct Hosts {
    all: Vec<Host>,
    index_of: HashMap<Option<String>, usize>,
}

impl Hosts {
    fn of(&mut self, name: Option<&str>, place: Place, ingress: usize) -> &mut Host {
        let key = name.map(str::to_owned);
        let index = *self.index_of.entry(key).or_insert_with_key(|name| {
            self.all.push(Host {
                name: name.clone(),
                place,
                locations: Vec::new(),
                regex_of: None,
                refuse: None,
                first: ingress,
                known: HashSet::new(),
            });
            self.all.len() - 1
        });
        &mut self.all[index]
    }
}

impl Host {
    fn add(&mut self, location: Location, shown: &str, notes: &mut Notes) {
        let key = (location.path.clone(), location.is_exact);
        if !self.known.insert(key) {
            let (path, host) = (&location.path, self.shown());
            return notes.add(location.place, format!("Ingress {shown}: {host} has the path {path} already; this one is left out. ingress-nginx keeps that of the older Ingress"));
        }
        self.locations.push(location);
    }

    fn has_root(&self) -> bool {
        self.known.contains(&("/".to_owned(), false))
    }

    /// The host as notes name it.
    pub(super) fn shown(&self) -> &str {
        self.name.as_deref().unwrap_or("any other host")
    }
}

fn root(default: &Backend, ingress: usize) -> Location {
    Location {
        path: "/".to_owned(),
        is_exact: false,
        ingress,
        backend: default.clone(),
        place: default.place,
    }
}
