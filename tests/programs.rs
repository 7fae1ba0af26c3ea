//! Checks that `cargo test` needs no program but drip.
//!
//! Also checks that each group of `tests/counterparts` can be run.

use std::fs;
use std::path::Path;

use crate::support::files_below;

/// Code that starts a program.
const CALL: &str = concat!("Command", "::new(");

/// Argument of that code if the program is drip.
const DRIP: &str = r#"env!("CARGO_BIN_EXE_drip")"#;

/// Folders of tests that may start other programs.
const GROUPS: [&str; 2] = ["tests/counterparts/", "tests/long/"];

/// Files that start another program, with the reason.
const OTHERS: [(&str, &str); 2] = [
    (
        "tests/support/launch.rs",
        "the binary of the tests, which then becomes drip",
    ),
    (
        "src/gateway/simulation/redis/redis_server.rs",
        "redis-server: a unit test, because it needs what the crate hides",
    ),
];

/// Modules of `tests/counterparts/main.rs` that are not groups.
const SHARED: [&str; 3] = ["peers", "programs", "support"];

fn read(root: &Path, name: &str) -> String {
    fs::read_to_string(root.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns the argument of a call that begins with `text`, up to its closing parenthesis.
fn argument(text: &str) -> &str {
    let mut depth = 0;
    let end = text.find(|c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth < 0
    });
    text[..end.unwrap_or(text.len())].trim()
}

#[test]
fn no_test_outside_a_group_starts_another_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = ["src", "tests"].map(|folder| files_below(&root.join(folder)));
    let mut found = Vec::new();
    for path in files.concat() {
        let name = path.strip_prefix(root).expect("a part");
        let name = name.display().to_string();
        let is_group = GROUPS.iter().any(|folder| name.starts_with(folder));
        let is_known = OTHERS.iter().any(|(file, _)| *file == name);
        if is_group || is_known || path.extension().is_none_or(|it| it != "rs") {
            continue;
        }
        let text = read(root, &name);
        for (at, call) in text.match_indices(CALL) {
            let program = argument(&text[at + call.len()..]);
            if program != DRIP {
                let line = text[..at].lines().count();
                found.push(format!("{name}:{line}: {program}"));
            }
        }
    }
    assert!(
        found.is_empty(),
        "these start other programs; move them to a group of tests/counterparts, or add them to OTHERS:\n{}",
        found.join("\n")
    );
}

#[test]
fn each_module_of_the_counterparts_is_a_group_of_the_script() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (main, script) = (
        read(root, "tests/counterparts/main.rs"),
        read(root, "tests/run.sh"),
    );
    let groups: Vec<_> = script
        .lines()
        .filter_map(|line| line.strip_prefix("group ")?.split(' ').next())
        .collect();
    let modules = main
        .lines()
        .filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
    for module in modules.filter(|name| !SHARED.contains(name)) {
        let is_group = groups.contains(&module);
        assert!(is_group, "tests/run.sh has no line `group {module} ...`");
    }
}
