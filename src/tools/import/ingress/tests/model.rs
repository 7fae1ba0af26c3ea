//! Tests which path takes a request, against a model of ingress-nginx: `expected`.

use proptest::prelude::*;
use testing::config;

use super::{action, imported, ingress, parsed, rule};

/// A path of an Ingress of its own: host, path, is exact, the Ingress uses regular expressions.
type ModelPath = (&'static str, &'static str, bool, bool);

const HOSTS: [&str; 5] = ["", "a.test", "b.a.test", "*.a.test", "*.test"];
const PATHS: [&str; 5] = ["/", "/foo", "/foo/bar", "/fo", "/foo/"];
const REQUESTED: [&str; 9] = [
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

/// Returns the service of the path that ingress-nginx finds: the host first, then the path.
///
/// `all`: the paths in the order of the manifest. Their services are `s0`, `s1` and so on.
fn expected(all: &[ModelPath], host: &str, path: &str) -> Option<String> {
    let exists = |name: &str| all.iter().any(|(host, ..)| *host == name);
    let wildcard = format!("*.{}", host.split_once('.')?.1);
    let server = [host, &wildcard].into_iter().find(|name| exists(name));
    let server = server.unwrap_or("");
    // The paths of the server, without those that an earlier path of the same type repeats.
    let mut own: Vec<(usize, &ModelPath)> = Vec::new();
    for (nth, model_path) in all.iter().enumerate() {
        let (host, path, is_exact, _) = *model_path;
        let is_same = |known: &ModelPath| (known.1, known.2) == (path, is_exact);
        if host == server && !own.iter().any(|(_, known)| is_same(known)) {
            own.push((nth, model_path));
        }
    }
    let best = if own.iter().any(|(_, (_, _, _, uses_regex))| *uses_regex) {
        // The longest expression is compared first. Expressions ignore case and have no end.
        own.sort_by_key(|(_, (_, path, ..))| std::cmp::Reverse((path.len(), *path)));
        let lower = path.to_ascii_lowercase();
        own.into_iter()
            .find(|(_, (_, start, ..))| lower.starts_with(start))
    } else {
        let base = |path: &str| path.trim_end_matches('/').to_owned();
        let is_found =
            |(_, (_, known, is_exact, _)): &&(usize, &ModelPath)| *is_exact && *known == path;
        let is_within = |(_, (_, known, is_exact, _)): &&(usize, &ModelPath)| {
            let rest = path.strip_prefix(&base(known));
            !is_exact && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        // Of two prefixes with the same base, ingress-nginx finds the first.
        let longest = own.iter().rev().filter(is_within);
        let longest = longest.max_by_key(|(_, (_, known, ..))| base(known).len());
        own.iter().find(is_found).or(longest).copied()
    };
    best.map(|(nth, _)| format!("s{nth}"))
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn each_request_goes_to_the_path_that_ingress_nginx_finds(
        all in prop::collection::vec((prop::sample::select(&HOSTS), prop::sample::select(&PATHS), any::<bool>(), prop::bool::weighted(0.1)), 1..9)
    ) {
        let mut text = String::new();
        for (nth, (host, path, is_exact, uses_regex)) in all.iter().enumerate() {
            let kind = if *is_exact { "Exact" } else { "Prefix" };
            let rule = rule(host, path, kind, &format!("s{nth}"));
            let annotations: &[(&str, &str)] = if *uses_regex { &[("use-regex", "true")] } else { &[] };
            text += &ingress(&format!("i{nth}"), annotations, &format!("  rules:\n{rule}"));
        }
        let import = imported(&text);
        let settings = parsed(&import);
        for host in ["a.test", "b.a.test", "c.test", "other.example"] {
            // A wildcard in drip matches more labels than in nginx. The import notes this.
            let exists = |name: &str| all.iter().any(|(host, ..)| *host == name);
            if host == "b.a.test" && !exists(host) && !exists("*.a.test") && exists("*.test") {
                continue;
            }
            for path in REQUESTED {
                let found = action(&settings, host, path).filter(|found| found != "404");
                let expected = expected(&all, host, path);
                prop_assert_eq!(&found, &expected, "{}{}\n{:?}\n{}", host, path, all, import.settings.as_ref().unwrap());
            }
        }
    }
}
