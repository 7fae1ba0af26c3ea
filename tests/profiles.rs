//! Tests of the build profiles: quick for users, thorough for packages, and one to profile.

use crate::support::assert_contains;
use std::process::Command;

use toml::Table;

/// Returns a profile of Cargo.toml.
fn profile(name: &str) -> Table {
    let manifest = include_str!("../Cargo.toml")
        .parse::<Table>()
        .expect("it is TOML");
    let profile = manifest["profile"].get(name).and_then(|it| it.as_table());
    profile
        .unwrap_or_else(|| panic!("no [profile.{name}]"))
        .clone()
}

#[test]
fn packages_and_benches_are_built_alike() {
    let [dist, bench] = ["dist", "bench"].map(profile);
    assert_eq!(dist["inherits"].as_str(), Some("release"));
    for profile in [dist, bench] {
        assert_eq!(profile["lto"].as_str(), Some("fat"));
        assert_eq!(profile["codegen-units"].as_integer(), Some(1));
    }
}

/// The program allocates with mimalloc, which replaces libc's functions at link time.
#[test]
fn the_program_allocates_with_mimalloc() {
    let program = Command::new(env!("CARGO_BIN_EXE_drip"))
        .arg("--version")
        .env("MIMALLOC_VERBOSE", "1")
        .output()
        .expect("drip is built");
    let received = String::from_utf8_lossy(&program.stderr);
    assert_contains!(received, "mimalloc");
}
