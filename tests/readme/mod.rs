//! Checks that the metrics of the code and the lines of the checklist are on their pages.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The tests of tests/checklist have the numbers of the page, and each number has a test.
#[test]
fn the_lines_of_the_checklist_are_those_that_are_tested() {
    let root = crate::support::page::root();
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
    let operations = read("docs/operations.md");
    let families = read("src/gateway/status/exposition/families.txt");
    let names = families.lines().filter_map(|line| line.split(' ').next());
    let mut told = 0;
    for name in names.filter(|name| name.starts_with("drip_")) {
        assert!(operations.contains(&format!("`{name}`")), "{name}");
        told += 1;
    }
    assert!(told > 30, "only {told} metrics");
}
