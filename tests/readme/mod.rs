//! Checks that the tests, metrics and commands named in the README and in docs/ exist.

mod commands;
mod page;
mod sandbox;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The name of a test follows each link to a file of tests.
#[test]
fn each_test_that_a_page_names_is_where_it_says() {
    let mut named = 0;
    for text in page::pages() {
        for behind in text.split("](").skip(1) {
            let Some((link, rest)) = behind.split_once(')') else {
                continue;
            };
            let file = link.trim_start_matches("../");
            if !file.starts_with("tests/") {
                continue;
            }
            let test = rest.split('`').nth(1).expect("a test");
            let code = fs::read_to_string(page::root().join(file))
                .unwrap_or_else(|error| panic!("{file}: {error}"));
            assert!(
                code.contains(&format!("fn {test}()")),
                "{file} has no {test}"
            );
            named += 1;
        }
    }
    assert!(named > 100, "only {named} tests are named");
}

/// The tests of tests/checklist have the numbers of the page, and each number has a test.
#[test]
fn the_lines_of_the_checklist_are_those_that_are_tested() {
    let root = page::root();
    let list = fs::read_to_string(root.join("docs/proxy-checklist.md")).expect("a page");
    let lines: BTreeSet<u32> = list
        .lines()
        .filter_map(|line| line.split_once(". ")?.0.parse().ok())
        .collect();
    let mut tested = BTreeSet::new();
    for file in fs::read_dir(root.join("tests/checklist")).expect("a folder") {
        let code = fs::read_to_string(file.expect("a file").path()).expect("a file");
        let names = code.split("fn line_").skip(1);
        tested.extend(names.filter_map(|name| name.split('_').next()?.parse::<u32>().ok()));
    }
    assert_eq!(lines, tested);
}

#[test]
fn each_metric_in_the_code_is_among_the_operations() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &str| fs::read_to_string(root.join(file)).expect("a file");
    let (code, operations) = (
        read("src/observe/metrics/mod.rs")
            + &read("src/observe/metrics/gate.rs")
            + &read("src/observe/metrics/class.rs")
            + &read("src/observe/metrics/room.rs"),
        read("docs/operations.md"),
    );
    let names = code.lines().filter(|line| line.contains("const "));
    // These are collected when Prometheus asks.
    let collected = read("src/status/exposition.rs") + &read("src/status/exposition/rooms.rs");
    let is_family = |line: &&str| line.contains("Family::") || line.trim().starts_with("\"drip_");
    let names = names.chain(collected.lines().filter(is_family));
    let names = names.filter_map(|line| line.split('"').nth(1));
    let mut told = 0;
    for name in names.filter(|name| name.starts_with("drip_")) {
        assert!(operations.contains(&format!("`{name}`")), "{name}");
        told += 1;
    }
    assert!(told > 30, "only {told} metrics");
}
