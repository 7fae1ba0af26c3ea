//! Finds the route of a request among many.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::PathPattern;
use crate::config::Route;

/// The routes by what they take, so that finding one does not take longer the more there are.
///
/// Only regular expressions are compared one by one: those of the request's host, and those of
/// every host.
#[derive(Debug, Default)]
pub struct RouteIndex {
    exact: Map<Box<[u8]>, ByHost>,
    regexes: ByHost,
    prefixes: Map<Box<[u8]>, ByHost>,
    /// The lengths of the prefixes, the longest first.
    lengths: Vec<usize>,
}

type Map<K, V> = HashMap<K, V, RandomState>;

/// Indices of routes, in the order of the file.
#[derive(Debug, Default)]
struct ByHost {
    named: Map<Box<str>, Vec<usize>>,
    any: Vec<usize>,
}

impl ByHost {
    fn add(&mut self, route: &Route, index: usize) {
        let list = match &route.host {
            Some(host) => self.named.entry(host.as_str().into()).or_default(),
            None => &mut self.any,
        };
        list.push(index);
    }

    /// The first route that `takes` the request: of those that name the host before the others.
    fn first(&self, host: &str, takes: impl Fn(usize) -> bool) -> Option<usize> {
        let named = self.named.get(host).into_iter().flatten();
        let mut routes = named.chain(&self.any).copied();
        routes.find(|index| takes(*index))
    }
}

impl RouteIndex {
    /// Indexes the routes.
    #[must_use]
    pub fn new(routes: &[Route]) -> Self {
        let mut new = Self::default();
        for (index, route) in routes.iter().enumerate() {
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

    /// The index of the route that takes a request, as [`Settings::route`](super::Settings::route)
    /// finds it.
    ///
    /// `routes`: those that it was made of. `method`: `None` excludes no route.
    #[must_use]
    pub fn find(
        &self,
        routes: &[Route],
        path: &[u8],
        host: &str,
        method: Option<&[u8]>,
    ) -> Option<usize> {
        let by_method = |index: usize| {
            let methods = &routes[index].methods;
            let is_named = |method| methods.iter().any(|named| named.as_bytes() == method);
            methods.is_empty() || method.is_none_or(is_named)
        };
        let of_path = |by_host: &ByHost| by_host.first(host, by_method);
        let exact = || self.exact.get(path).and_then(of_path);
        let regex = || {
            let takes = |index: usize| by_method(index) && routes[index].path.matches(path);
            self.regexes.first(host, takes)
        };
        let prefix = || {
            let prefixes = self.lengths.iter().filter_map(|length| path.get(..*length));
            let mut by_host = prefixes.filter_map(|prefix| self.prefixes.get(prefix));
            by_host.find_map(of_path)
        };
        exact().or_else(regex).or_else(prefix)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::parse;

    #[test]
    fn it_finds_what_a_comparison_with_each_route_finds() {
        let paths = [
            "/",
            "/a",
            "/a/",
            "/a/b",
            "= /a",
            "= /a/b",
            "regex:^/a",
            "regex:b$",
        ];
        let hosts = ["", "host = \"x.test\"\n", "host = \"y.test\"\n"];
        let methods = [
            "",
            "methods = [\"GET\"]\n",
            "methods = [\"POST\", \"PUT\"]\n",
        ];
        let mut tables = Vec::new();
        for path in paths {
            for host in hosts {
                for method in methods {
                    let table = "[[routes]]\norigin = \"app\"\n";
                    tables.push(format!("{table}path = \"{path}\"\n{host}{method}"));
                }
            }
        }
        let origins = "[origins.app]\nservers = [\"http://127.0.0.1:1\"]\n";
        // Different files: one route in several, from another one on.
        for step in 1..20 {
            for first in 0..step {
                let some: Vec<_> = tables.iter().skip(first).step_by(step).cloned().collect();
                let text = format!("{origins}{}", some.concat());
                let settings = parse(&text, Path::new("gateway.toml"), false).unwrap();
                let index = RouteIndex::new(&settings.routes);
                for path in ["/", "/a", "/a/", "/a/b", "/a/bb", "/c", "/cb", ""] {
                    for host in ["x.test", "y.test", "z.test", ""] {
                        for method in [None, Some("GET"), Some("PUT"), Some("HEAD")] {
                            let expected = settings.route(path.as_bytes(), Some(host), method);
                            let routes = &settings.routes;
                            let method = method.map(str::as_bytes);
                            let found = index.find(routes, path.as_bytes(), host, method);
                            let expected = expected.map(|(index, _)| index);
                            assert_eq!(found, expected, "{path} {host} {method:?} in {text}");
                        }
                    }
                }
            }
        }
    }
}
