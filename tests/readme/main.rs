//! The README names tests, metrics and commands; this keeps its word.

mod commands;
mod page;
#[allow(dead_code)]
#[path = "../shared/redis.rs"]
mod redis;
mod sandbox;
// Shared with the other tests, which use the rest of it.
#[allow(dead_code, unused_imports)]
#[path = "../gateway/support/mod.rs"]
mod support;

use std::fs;
use std::path::Path;

#[test]
fn each_test_that_the_readme_names_is_where_it_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).expect("a README");
    let mut named = 0;
    for row in readme.lines().filter(|line| line.contains("](tests/")) {
        let (_, rest) = row.split_once("](").expect("a link");
        let (file, rest) = rest.split_once(')').expect("the end of the link");
        let test = rest.split('`').nth(1).expect("a test");
        let code =
            fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(
            code.contains(&format!("fn {test}()")),
            "{file} has no {test}"
        );
        named += 1;
    }
    assert!(named > 10, "only {named} rows name a test");
}

#[test]
fn each_metric_in_the_code_is_in_the_readme() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &str| fs::read_to_string(root.join(file)).expect("a file");
    let (code, readme) = (read("src/metrics/mod.rs"), read("README.md"));
    let names = code
        .lines()
        .map(|line| line.trim_start_matches("pub "))
        .filter(|line| line.starts_with("const "))
        .filter_map(|line| line.split('"').nth(1));
    let mut told = 0;
    for name in names.filter(|name| name.starts_with("drip_")) {
        let short = name.rsplit_once("last_reload").map_or(name, |(_, end)| end);
        assert!(
            readme.contains(name) || readme.contains(&format!("…{short}`")),
            "{name}"
        );
        told += 1;
    }
    assert!(told > 10, "only {told} metrics");
}
