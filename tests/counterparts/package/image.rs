//! Tests of the Containerfile's image, without a container engine.
//!
//! The last stage is a root folder with the program and its libraries.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Signal, geteuid};
use tempfile::TempDir;

use crate::package::{output, run, source};
use crate::support::{Gateway, Origin, Site, one_zone};

/// Returns an instruction of the last stage.
fn instruction(name: &str) -> String {
    let text = fs::read_to_string(source("packaging/Containerfile")).expect("a file");
    let (_, last) = text.rsplit_once("\nFROM ").expect("two stages");
    let mut lines = last.lines().filter_map(|line| line.strip_prefix(name));
    let found = lines.next().unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(lines.next(), None, "{name} twice");
    found.trim().to_owned()
}

/// Returns the words of a command in JSON.
fn words(command: &str) -> Vec<String> {
    serde_json::from_str(command).unwrap_or_else(|error| panic!("{command}: {error}"))
}

/// Returns a command in the image, as the user of the image.
fn in_image(root: &TempDir, command: &[String]) -> Command {
    // The first process of a container has all rights in its own root. Without root, a user
    // namespace provides them.
    let mut chroot = if geteuid().is_root() {
        let mut chroot = Command::new("chroot");
        chroot.arg(format!("--userspec={}", instruction("USER")));
        chroot
    } else {
        let mut unshare = Command::new("unshare");
        unshare.args(["--map-root-user", "chroot"]);
        unshare
    };
    chroot
        .arg(root.path())
        .args(command)
        .env("PATH", "/usr/bin:/usr/sbin")
        .env_remove("DRIP_ADMIN_TOKEN")
        .env_remove("DRIP_ADMIN_READ_TOKEN")
        .stdin(Stdio::null());
    chroot
}

/// Builds the last stage: the parts of its base that the program needs, and the program.
fn image() -> TempDir {
    let root = TempDir::new().expect("a folder");
    let program = env!("CARGO_BIN_EXE_drip");
    let copied = instruction("COPY");
    let (from, to) = copied.rsplit_once(' ').expect("from and to");
    assert!(from.ends_with("/target/dist/drip"), "{from}");
    let into = |file: &str, to: &str| {
        let to = root.path().join(to.trim_start_matches('/'));
        fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
        fs::copy(file, to).expect("a copy");
    };
    into(program, to);
    let libraries = run(Command::new("ldd").arg(program));
    for library in libraries
        .split_whitespace()
        .filter(|word| word.starts_with('/'))
    {
        into(library, library);
    }
    // mktemp makes folders that only their owner may read.
    run(Command::new("chmod").arg("-R").arg("a+rX").arg(root.path()));
    root
}

#[test]
fn the_image_serves_as_its_user_and_reports_its_health() {
    let user = instruction("USER");
    assert!(!user.starts_with('0') && user != "root", "{user}");
    let root = image();
    let mut start = words(&instruction("ENTRYPOINT"));
    start.extend(words(&instruction("CMD")));
    let health = instruction("HEALTHCHECK");
    let (_, health) = health.rsplit_once("CMD ").expect("a command");
    let health = words(health);

    let origin = Origin::start();
    let site = Site::new();
    let folder = root.path().join("etc/drip");
    fs::create_dir_all(&folder).expect("a folder");
    assert_eq!(instruction("WORKDIR"), "/etc/drip");
    let text = site.text(&one_zone(&origin, "9r/s", "burst = 1"));
    fs::write(folder.join("gateway.toml"), text).expect("a file");

    let away = output(&mut in_image(&root, &health));
    assert_eq!(away.status.code(), Some(1), "{away:?}");
    let mut gateway = Gateway::run_as(site, in_image(&root, &start));
    gateway.wait_until_ready();
    assert_eq!(run(&mut in_image(&root, &health)), "ok\n");
    assert_eq!(gateway.fetch("/").status, 200);
    gateway.signal(Signal::TERM);
    assert_eq!(gateway.wait(Duration::from_secs(10)).code(), Some(0));
}
