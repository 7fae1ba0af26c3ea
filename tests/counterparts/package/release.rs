//! Tests of `packaging/release`, which makes the files of a release, and of the image of a release.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::package::{run, source};

/// What a release reads of the repository.
const PARTS: [&str; 8] = [
    "Cargo.toml",
    "CHANGELOG.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "docs",
    "grafana",
    "packaging",
];

/// Copies the repository's parts to a folder.
fn copy() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let parts = PARTS.map(source);
    run(Command::new("cp").arg("-R").args(parts).arg(folder.path()));
    folder
}

fn release(repository: &Path, tag: &str) -> Output {
    Command::new(repository.join("packaging/release"))
        .args(["--binary", env!("CARGO_BIN_EXE_drip"), "--out"])
        .arg(repository.join("out"))
        .arg(tag)
        .output()
        .expect("the script")
}

#[test]
fn a_tag_makes_packages_with_checksums_if_version_and_changelog_fit_it() {
    let version = env!("CARGO_PKG_VERSION");
    let repository = copy();
    let repository = repository.path();
    for (tag, why) in [
        ("v999.0.0".to_owned(), "the tag must be v"),
        (format!("v{version}"), "CHANGELOG.md has no heading"),
    ] {
        let refused = release(repository, &tag);
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains(why), "{said}");
        assert!(!repository.join("out").exists(), "nothing is built");
    }
    let changelog = repository.join("CHANGELOG.md");
    let text = fs::read_to_string(&changelog).expect("a file");
    let heading = format!("## [{version}] - 2026-01-01");
    fs::write(&changelog, text.replacen("## [Unreleased]", &heading, 1)).expect("a file");
    let released = release(repository, &format!("v{version}"));
    assert!(released.status.success(), "{released:?}");
    let sums = fs::read_to_string(repository.join("out/SHA256SUMS")).expect("checksums");
    let files: Vec<&str> = sums.lines().filter_map(|line| line.get(66..)).collect();
    let begin = |it: &str| files.iter().filter(|file| file.starts_with(it)).count();
    let package = begin(&format!("drip_{version}_"));
    let archive = begin(&format!("drip-{version}-"));
    assert_eq!((files.len(), package, archive), (2, 1, 1), "{sums}");
}

/// Returns the instructions of the last stage but the program's origin.
fn stage(file: &str) -> Vec<String> {
    let text = fs::read_to_string(source(file)).expect("a file");
    let last = text.rfind("\nFROM ").map_or(&*text, |at| &text[at..]);
    let lines = last.lines().filter(|line| !line.starts_with('#'));
    let lines = lines.filter(|line| !line.starts_with("COPY") && !line.starts_with("ARG"));
    lines
        .map(str::to_owned)
        .filter(|line| !line.is_empty())
        .collect()
}

#[test]
fn the_image_of_a_release_is_the_one_that_the_tests_run() {
    assert_eq!(
        stage("packaging/Containerfile.release"),
        stage("packaging/Containerfile")
    );
}
