//! Compares the output of `drip check` and `drip schema` with golden files.

use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tempfile::TempDir;

use crate::goldens::golden::check;
use crate::support::drip;

/// Copies the files of the suite into a folder, with a certificate if needed. Returns their names.
fn copy(folder: &Path) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["www.example.com".to_owned()]).expect("a certificate");
    let mut names = Vec::new();
    for from in ["tests/corpus/gateways", "docs/examples"] {
        let to = folder.join(from.rsplit('/').next().unwrap_or_default());
        fs::create_dir(&to).expect("a folder");
        for entry in fs::read_dir(root.join(from)).expect("a folder") {
            let path = entry.expect("a file").path();
            if path.extension().is_none_or(|it| it != "toml") {
                continue;
            }
            let name = path.file_name().expect("a name");
            let bytes = fs::read(&path).expect("a file");
            let bytes = match String::from_utf8(bytes) {
                Ok(text) => text
                    .replace("/run/tls/", "")
                    .replace("/etc/letsencrypt/live/www.example.com/", "")
                    .into_bytes(),
                Err(error) => error.into_bytes(),
            };
            let path = to.join(name);
            fs::write(&path, bytes).expect("a copy");
            let name = path.strip_prefix(folder).expect("a part");
            names.push(name.display().to_string());
        }
        for name in ["a.pem", "b.pem", "fullchain.pem"] {
            fs::write(to.join(name), cert.pem()).expect("a certificate");
        }
        for name in ["a.key", "../a.key", "privkey.pem"] {
            fs::write(to.join(name), signing_key.serialize_pem()).expect("a key");
        }
    }
    names.sort();
    names
}

/// Returns the output for a file: the settings or the problems.
fn checked(folder: &Path, file: &str, options: &[&str]) -> String {
    let mut command = drip();
    command
        .current_dir(folder)
        .env("DRIP_ADMIN_TOKEN", "x".repeat(32));
    let output = command.arg("check").args(options).arg(file);
    let output = output.output().expect("it runs");
    let status = output.status.code();
    let text = [output.stderr, output.stdout].concat();
    let text = String::from_utf8(text).expect("text");
    format!("== {file}: {status:?}\n{text}\n")
}

/// Masks the folder, and defaults that depend on the machine: its name, and the worker count.
fn masked(shown: &str, folder: &Path) -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    let host = format!("name = \"{}\"", host.trim());
    let shown = shown.replace(&folder.display().to_string(), "FOLDER");
    let lines = shown.lines().map(|line| match line {
        line if line == host => "name = \"HOST\"\n".to_owned(),
        line if line.starts_with("workers = ") => "workers = #\n".to_owned(),
        line => line.to_owned() + "\n",
    });
    lines.collect()
}

/// Replaces a table that an earlier file has too by that file's name.
fn without_repetition(shown: &[String]) -> String {
    let (mut seen, mut text) = (HashMap::<&str, &str>::new(), String::new());
    for shown in shown {
        let file = shown.lines().next().unwrap_or_default();
        for part in shown.trim_end().split("\n\n") {
            let table = part.lines().next().unwrap_or_default();
            let known = seen.get(part).filter(|_| part.lines().count() > 2);
            match known {
                Some(earlier) => writeln!(text, "{table} as in {earlier}\n"),
                None => writeln!(text, "{part}\n"),
            }
            .expect("memory");
            seen.entry(part).or_insert(file);
        }
    }
    text
}

#[test]
fn check_says_the_same_of_each_file() {
    let folder = TempDir::new().expect("a folder");
    let names = copy(folder.path());
    let of = |options: &'static [&str]| {
        let folder = folder.path();
        names.iter().map(move |name| checked(folder, name, options))
    };
    let shown: Vec<_> = of(&["--all"])
        .map(|shown| masked(&shown, folder.path()))
        .collect();
    check("check.txt", &without_repetition(&shown));
    let json: Vec<_> = of(&["--json"])
        .map(|shown| masked(&shown, folder.path()))
        .collect();
    check("check-json.txt", &json.concat());
}

/// Returns a name that depends on the text alone (FNV-1a), so that other names stay the same.
fn short_name(text: &str) -> String {
    let step = |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    format!("{:08x}", text.bytes().fold(0x811c_9dc5, step))
}

#[test]
fn schema_is_the_same() {
    let output = drip().arg("schema").output().expect("it runs");
    let text = String::from_utf8(output.stdout).expect("text");
    // The same text without its indentation. Patterns are long and repeated, so names stand for
    // them.
    let mut known = HashMap::new();
    let mut folded = String::new();
    for line in text.lines().map(str::trim_start) {
        if line.len() <= 100 {
            folded.extend([line, "\n"]);
            continue;
        }
        let name = short_name(line);
        match known.insert(name.clone(), line) {
            Some(same) => {
                assert_eq!(same, line, "both have the name {name}");
                writeln!(folded, "[{name}]")
            }
            None => writeln!(folded, "[{name}] {line}"),
        }
        .expect("memory");
    }
    check("schema.txt", &folded);
}
