//! Index of routes, which finds the route of a request among many.

use std::cmp::Reverse;
use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::PathPattern;
use crate::{HostPattern, Route};

/// Index of routes by path and host.
///
/// The time of a lookup does not grow with the number of paths and hosts, with these exceptions.
/// Prefixes take one lookup for each of their lengths. These are compared one by one: routes with
/// the same path and host, routes with regular expressions for the request's host or for every
/// host, and all routes of a path if the request's host is unknown.
#[derive(Debug, Default)]
pub struct RouteIndex {
    /// Routes with an exact path, by that path.
    exact: Map<Box<[u8]>, ByHost>,
    /// Routes whose path is a regular expression.
    regexes: ByHost,
    /// Routes whose path is a prefix, by that prefix.
    prefixes: Map<Box<[u8]>, ByHost>,
    /// Lengths of the prefixes, the longest first.
    lengths: Vec<usize>,
}

type Map<K, V> = HashMap<K, V, RandomState>;

/// Indices of routes by host. A list begins with the routes that have the most conditions.
///
/// Routes with equally many conditions are in the order of the file.
#[derive(Debug, Default)]
struct ByHost {
    /// By the name of the host.
    named: Map<Box<str>, Vec<usize>>,
    /// By the suffix of a wildcard host, such as `.example.com`.
    below: Map<Box<str>, Vec<usize>>,
    /// Routes for every host.
    any: Vec<usize>,
}

impl ByHost {
    /// Adds a route under each of its hosts.
    fn add(&mut self, route: &Route, index: usize) {
        if route.hosts.is_empty() {
            self.any.push(index);
        }
        for host in &route.hosts {
            let (map, host) = match host {
                HostPattern::Exact(name) => (&mut self.named, name),
                HostPattern::Below(suffix) => (&mut self.below, suffix),
            };
            map.entry(host.as_str().into()).or_default().push(index);
        }
    }

    /// Returns the first route that takes the request, as the function `takes` decides.
    ///
    /// Routes that name the host come first, then routes with the longest wildcard, and last routes
    /// for every host. `host`: `None` if it is unknown. Then all routes that name hosts or
    /// wildcards come before the routes for every host.
    fn first(
        &self,
        routes: &[Route],
        host: Option<&str>,
        takes: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let find = |list: &Vec<usize>| list.iter().copied().find(|index| takes(*index));
        let Some(host) = host else {
            let lists = self.named.values().chain(self.below.values());
            let candidates = lists.flatten().copied().filter(|index| takes(*index));
            let by_precedence =
                |index: &usize| (Reverse(routes[*index].conditions_count()), *index);
            let first = candidates.min_by_key(by_precedence);
            return first.or_else(|| find(&self.any));
        };
        let named = self.named.get(host).and_then(find);
        let below = || {
            if self.below.is_empty() {
                return None;
            }
            // A wildcard stands for at least one label.
            let dots = memchr::memchr_iter(b'.', host.as_bytes()).filter(|dot| *dot > 0);
            let mut lists = dots.filter_map(|dot| self.below.get(&host[dot..]));
            lists.find_map(find)
        };
        named.or_else(below).or_else(|| find(&self.any))
    }
}

impl RouteIndex {
    /// Indexes the routes.
    pub fn new(routes: &[Route]) -> Self {
        let mut new = Self::default();
        let mut sorted: Vec<_> = routes.iter().enumerate().collect();
        sorted.sort_by_key(|(_, route)| Reverse(route.conditions_count()));
        for (index, route) in sorted {
            let by_host = match &route.path {
                PathPattern::Exact(path) => new.exact.entry(path.as_bytes().into()).or_default(),
                PathPattern::Prefix(path) => {
                    new.prefixes.entry(path.as_bytes().into()).or_default()
                }
                PathPattern::Regex(_) => &mut new.regexes,
            };
            by_host.add(route, index);
        }
        new.lengths = new.prefixes.keys().map(|prefix| prefix.len()).collect();
        new.lengths.sort_unstable_by(|a, b| b.cmp(a));
        new.lengths.dedup();
        new
    }

    /// Returns the index of the route that takes a request.
    ///
    /// The order of precedence is:
    ///
    /// 1. An exact path, then a regular expression, then the longest prefix.
    /// 2. A host by name, then the longest wildcard, then every host.
    /// 3. The most conditions.
    /// 4. The order of the file.
    ///
    /// `routes`: the routes of the index. A host or a method that is `None`, because it is unknown,
    /// excludes no route. `meets`: returns whether the request meets the conditions of a route.
    pub fn find(
        &self,
        routes: &[Route],
        path: &[u8],
        host: Option<&str>,
        method: Option<&[u8]>,
        meets: impl Fn(&Route) -> bool,
    ) -> Option<usize> {
        let is_met = |index: usize| {
            let route = &routes[index];
            let is_listed = |method| route.methods.iter().any(|known| known.as_bytes() == method);
            let has_method = route.methods.is_empty() || method.is_none_or(is_listed);
            has_method && (route.conditions_count() == 0 || meets(route))
        };
        let by_host = |by_host: &ByHost| by_host.first(routes, host, is_met);
        let exact = || self.exact.get(path).and_then(by_host);
        let regex = || {
            let takes = |index: usize| is_met(index) && routes[index].path.matches(path);
            self.regexes.first(routes, host, takes)
        };
        let prefix = || {
            let prefixes = self.lengths.iter().filter_map(|length| path.get(..*length));
            let mut found = prefixes.filter_map(|prefix| self.prefixes.get(prefix));
            found.find_map(by_host)
        };
        exact().or_else(regex).or_else(prefix)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::parse;

    /// Reference: finds the route by comparing the request with each route.
    ///
    /// If the host is unknown, a route that names a host counts as naming it.
    fn find_one_by_one(
        routes: &[Route],
        path: &[u8],
        host: Option<&str>,
        method: Option<&str>,
        meets: impl Fn(&Route) -> bool,
    ) -> Option<usize> {
        let by_path = |route: &Route| match &route.path {
            PathPattern::Prefix(prefix) => (0, prefix.len()),
            PathPattern::Regex(_) => (1, 0),
            PathPattern::Exact(_) => (2, 0),
        };
        let by_host = |route: &Route| {
            let Some(host) = host else {
                let is_for_every_host = route.hosts.is_empty();
                return Some(if is_for_every_host { 0 } else { usize::MAX });
            };
            let ranks = route.hosts.iter().filter_map(|pattern| match pattern {
                HostPattern::Exact(name) => (name == host).then_some(usize::MAX),
                HostPattern::Below(end) => {
                    (host.len() > end.len() && host.ends_with(end)).then_some(end.len())
                }
            });
            let any = route.hosts.is_empty().then_some(0);
            ranks.max().or(any)
        };
        let ranked = routes.iter().enumerate().filter_map(|(index, route)| {
            let by_method = |method| route.methods.iter().any(|named| named == method);
            let is_taken = route.path.matches(path)
                && (route.methods.is_empty() || method.is_none_or(by_method))
                && (route.conditions.is_empty() || meets(route));
            let rank = (by_path(route), by_host(route)?, route.conditions.len());
            is_taken.then_some((rank, Reverse(index)))
        });
        ranked.max().map(|(_, Reverse(index))| index)
    }

    #[test]
    fn the_index_finds_what_a_comparison_with_each_route_finds() {
        let (prefixes, exact) = (["/", "/a", "/a/", "/a/b"], ["= /a", "= /a/b"]);
        let paths = [&prefixes[..], &exact, &["regex:^/a", "regex:b$"]].concat();
        let hosts = [
            "",
            "host = \"x.test\"\n",
            "host = [\"y.test\", \"*.x.test\", \"*.test\"]\n",
            "host = \"*.a.x.test\"\nmatch = { \"query:a\" = \"1\" }\n",
            "match = { \"query:a\" = \"1\" }\n",
            "match = { \"query:a\" = \"1\", \"query:b\" = \"1\" }\n",
        ];
        let (get, others) = ("methods = [\"GET\"]\n", "methods = [\"POST\", \"PUT\"]\n");
        let mut tables = Vec::new();
        for path in paths {
            for host in hosts {
                for methods in ["", get, others] {
                    let table = "[[routes]]\norigin = \"app\"\n";
                    tables.push(format!("{table}path = \"{path}\"\n{host}{methods}"));
                }
            }
        }
        let origins = "[origins.app]\nservers = [\"http://127.0.0.1:1\"]\n";
        // Different files: every `step`-th route, beginning at `first`.
        for step in 1..20 {
            for first in 0..step {
                let some: Vec<_> = tables.iter().skip(first).step_by(step).cloned().collect();
                let text = format!("{origins}{}", some.concat());
                let settings = parse(&text, Path::new("gateway.toml"), false).unwrap();
                let index = RouteIndex::new(&settings.routes);
                for path in ["/", "/a", "/a/", "/a/b", "/a/bb", "/c", "/cb", ""] {
                    // A host, and the highest number of conditions that the request meets.
                    for (host, met) in [
                        (Some("x.test"), 0),
                        (Some("y.test"), 1),
                        (Some("z.test"), 2),
                        (Some("b.a.x.test"), 1),
                        (Some("b.x.test"), 2),
                        (Some(".x.test"), 1),
                        (Some(""), 0),
                        (None, 1),
                    ] {
                        for method in [None, Some("GET"), Some("PUT"), Some("HEAD")] {
                            let meets = |route: &Route| route.conditions.len() <= met;
                            let routes = &settings.routes;
                            let bytes = path.as_bytes();
                            let expected = find_one_by_one(routes, bytes, host, method, meets);
                            let method = method.map(str::as_bytes);
                            let found = index.find(routes, bytes, host, method, meets);
                            assert_eq!(found, expected, "{path} {host:?} {method:?} in {text}");
                        }
                    }
                }
            }
        }
    }
}
