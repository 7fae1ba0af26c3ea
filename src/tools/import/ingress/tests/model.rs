//! Tests which path takes a request, against a model of ingress-nginx.
//!
//! ingress-nginx finds the host first, then the path.

use proptest::prelude::*;
use testing::config;

use super::{found, imported, ingress, parsed, rule};

/// A path of the model: host, path, is exact, the Ingress uses regular expressions.
type ModelPath = (usize, usize, bool, bool);

const HOSTS: [&str; 5] = ["", "a.test", "b.a.test", "*.a.test", "*.test"];
const PATHS: [&str; 5] = ["/", "/foo", "/foo/bar", "/fo", "/foo/"];
const ASKED: [&str; 9] = [
    "/",
    "/foo",
    "/foo/",
    "/foo/bar",
    "/foo/bar/x",
    "/foobar",
    "/fo",
    "/FOO",
    "/x",
];

/// Returns the path that ingress-nginx finds: the host first, then the path.
fn expected(all: &[ModelPath], host: &str, path: &str) -> Option<String> {
    let is_there = |known: &str| all.iter().any(|it| HOSTS[it.0] == known);
    let wildcard = format!("*.{}", host.split_once('.')?.1);
    let server = [host, &wildcard].into_iter().find(|known| is_there(known));
    let server = server.unwrap_or("");
    let mut own: Vec<(usize, &ModelPath)> = Vec::new();
    for (nth, it) in all.iter().enumerate() {
        let is_known = own
            .iter()
            .any(|(_, known)| (known.1, known.2) == (it.1, it.2));
        if HOSTS[it.0] == server && !is_known {
            own.push((nth, it));
        }
    }
    let best = if own.iter().any(|(_, it)| it.3) {
        own.sort_by_key(|(_, it)| std::cmp::Reverse((PATHS[it.1].len(), PATHS[it.1])));
        let lower = path.to_ascii_lowercase();
        own.into_iter()
            .find(|(_, it)| lower.starts_with(PATHS[it.1]))
    } else {
        let exact = |(_, it): &&(usize, &ModelPath)| it.2 && PATHS[it.1] == path;
        let base = |it: &ModelPath| PATHS[it.1].trim_end_matches('/').to_owned();
        let is_within = |(_, it): &&(usize, &ModelPath)| {
            let rest = path.strip_prefix(&base(it));
            !it.2 && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        // Of two prefixes with the same base, ingress-nginx finds the first.
        let longest = own.iter().rev().filter(is_within);
        let longest = longest.max_by_key(|(_, it)| base(it).len());
        own.iter().find(exact).or(longest).copied()
    };
    best.map(|(nth, _)| format!("s{nth}"))
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn each_host_has_its_own_paths_only(
        all in prop::collection::vec((0..HOSTS.len(), 0..PATHS.len(), any::<bool>(), prop::bool::weighted(0.1)), 1..9)
    ) {
        let mut text = String::new();
        for (nth, (host, path, is_exact, is_regex)) in all.iter().enumerate() {
            let kind = if *is_exact { "Exact" } else { "Prefix" };
            let rule = rule(HOSTS[*host], PATHS[*path], kind, &format!("s{nth}"));
            let annotations: &[(&str, &str)] = if *is_regex { &[("use-regex", "true")] } else { &[] };
            text += &ingress(&format!("i{nth}"), annotations, &format!("  rules:\n{rule}"));
        }
        let import = imported(&text);
        let settings = parsed(&import);
        for host in ["a.test", "b.a.test", "c.test", "other.example"] {
            // A wildcard in drip matches more labels than in nginx. The import notes this.
            let is_there = |known: &str| all.iter().any(|it| HOSTS[it.0] == known);
            if host == "b.a.test" && !is_there(host) && !is_there("*.a.test") && is_there("*.test") {
                continue;
            }
            for path in ASKED {
                let found = found(&settings, host, path).filter(|found| found != "404");
                let expected = expected(&all, host, path);
                prop_assert_eq!(&found, &expected, "{}{}\n{:?}\n{}", host, path, all, import.settings.as_ref().unwrap());
            }
        }
    }
}
