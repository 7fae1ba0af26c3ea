//! Tests of an installed package: start, reload, stop, upgrade, removal and purge.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use super::root::Root;
use super::unit::{Manager, Unit};
use super::{build, output, run, source};
use crate::support::{Gateway, Origin, Site, assert_contains, fetch, files_below};

const FILE: &str = "etc/drip/gateway.toml";

/// Returns the line of the package's file that begins with `begin`.
fn line<'a>(text: &'a str, begin: &str) -> &'a str {
    let line = text.lines().find(|line| line.starts_with(begin));
    line.unwrap_or_else(|| panic!("no {begin} in {text}"))
}

/// Edits the installed file: the addresses of `site`, the log in the root, and `origin`.
fn edit(root: &Root, site: &Site, origin: &Origin) -> String {
    let text = root.read(FILE);
    let listen = format!(
        "listen = [\"{}\"]\nadmin = \"{}\"",
        site.address, site.admin
    );
    let servers = format!("servers = [\"http://{}\"]", origin.address);
    let text = text
        .replace(line(&text, "listen"), &listen)
        .replace(line(&text, "servers"), &servers);
    let text = root.outside(&text);
    fs::write(root.path(FILE), &text).expect("a file");
    text
}

/// Some files of the package.
const FILES: &str = "usr/share/man/man1/drip.1.gz usr/share/man/man1/drip-run.1.gz \
    usr/share/bash-completion/completions/drip usr/share/zsh/vendor-completions/_drip \
    usr/share/fish/vendor_completions.d/drip.fish etc/logrotate.d/drip \
    usr/share/doc/drip/copyright";

#[test]
fn it_is_installed_started_reloaded_stopped_upgraded_removed_and_purged() {
    let root = Root::new();
    root.install("1.0.0");
    assert!(root.read("etc/passwd").lines().any(|user| {
        user.starts_with("drip:") && user.ends_with(":/var/lib/drip:/usr/sbin/nologin")
    }));
    for file in FILES.split(' ') {
        assert!(root.path(file).exists(), "{file}");
    }
    let secrets = fs::metadata(root.path("etc/default/drip")).expect("a file");
    assert_eq!(secrets.permissions().mode() & 0o777, 0o600);

    let origin = Origin::start();
    let site = Site::new();
    let (address, admin) = (site.address, site.admin);
    let edited = edit(&root, &site, &origin);
    fs::create_dir_all(root.path("var/log/drip")).expect("a folder");
    let unit = Unit::of(&root);
    let manager = Manager::listen(site.folder());
    let watchdog = Duration::from_millis(400);
    let mut gateway = Gateway::run_as(site, unit.start(&manager, watchdog));
    let ready = manager.hear("READY=1");
    let expected = format!("Serving at {address}; live page at http://{admin}/");
    assert_eq!(Manager::value(&ready, "STATUS"), expected);
    assert_eq!(fetch(address, "/").status, 200);
    let log = fs::metadata(root.path("var/log/drip/access.log")).expect("a log");
    assert_eq!(log.permissions().mode() & 0o777, 0o640);
    let mut health = Command::new(root.path("usr/bin/drip"));
    let printed = run(health.args(["health", "-c"]).arg(root.path(FILE)));
    assert_eq!(printed, "ready\n");

    manager.hear("WATCHDOG=1");
    manager.hear("WATCHDOG=1");

    unit.reload(gateway.id()).expect("it reloads");
    let reloading = manager.hear("RELOADING=1");
    let at = Manager::value(&reloading, "MONOTONIC_USEC").parse::<u64>();
    assert!(at.expect("a time") > 0);
    assert_eq!(manager.hear("READY=1"), ready);

    fs::write(root.path(FILE), edited.replace("10r/s", "10")).expect("a file");
    manager.hear("RELOADING=1");
    let refused = manager.hear("READY=1");
    assert!(Manager::value(&refused, "STATUS").contains("the previous settings stay in force"));
    let said = unit
        .reload(gateway.id())
        .expect_err("the file has an error");
    assert_contains!(said, "gateway.toml:");
    fs::write(root.path(FILE), &edited).expect("a file");
    manager.hear("RELOADING=1");
    assert_eq!(manager.hear("READY=1"), ready);
    assert_eq!(fetch(address, "/").status, 200);

    gateway.signal(Signal::TERM);
    manager.hear("STOPPING=1");
    let status = gateway.wait(unit.seconds("TimeoutStopSec"));
    assert_eq!(status.code(), Some(0), "{}", gateway.log());

    root.install("1.0.1");
    let status = root.dpkg(&["--status", "drip"]);
    assert!(status.contains("\nVersion: 1.0.1\n"));
    assert_eq!(root.read(FILE), edited);
    root.dpkg(&["--remove", "drip"]);
    assert!(!root.path("usr/bin/drip").exists());
    assert_eq!(root.read(FILE), edited);
    root.dpkg(&["--purge", "drip"]);
    for removed in ["etc/drip", "etc/default/drip", "var/log/drip"] {
        assert!(!root.path(removed).exists(), "{removed}");
    }
}

#[test]
fn each_link_of_the_installed_pages_leads_to_an_installed_file() {
    let root = Root::new();
    root.install("1.0.0");
    let mut followed = 0;
    for page in files_below(&root.path("usr/share/doc/drip")) {
        if page.extension().is_none_or(|end| end != "md") {
            continue;
        }
        let text = fs::read_to_string(&page).expect("a page");
        for rest in text.split("](").skip(1) {
            let (link, _) = rest.split_once(')').expect("an end");
            let file = link.split('#').next().unwrap_or(link);
            if file.is_empty() || file.starts_with("http") {
                continue;
            }
            let target = page.parent().expect("a folder").join(file);
            assert!(target.exists(), "{} names {link}", page.display());
            followed += 1;
        }
    }
    assert!(followed >= 100, "{followed}");
}

#[test]
fn the_packaged_file_is_valid_and_the_socket_unit_fits_it() {
    let file = source("packaging/gateway.toml");
    let settings = run(Command::new(env!("CARGO_BIN_EXE_drip"))
        .args(["check", "--all", "-c"])
        .arg(&file));
    let socket = fs::read_to_string(source("packaging/systemd/drip.socket")).expect("a unit");
    let address = line(&socket, "ListenStream=").trim_start_matches("ListenStream=");
    assert_contains!(settings, &format!("listen = [\"{address}\"]"));
    let unit = fs::read_to_string(source("packaging/systemd/drip.service")).expect("a unit");
    let seconds = |name: &str| {
        let (_, value) = line(&settings, name).split_once(" = ").expect("a value");
        let value = value.trim_matches('"').trim_end_matches('s').parse::<u64>();
        Duration::from_secs(value.expect("seconds"))
    };
    let stop = seconds("stop_delay") + seconds("shutdown_timeout");
    // A second for last responses, one for the last lines of the log, one for threads that end.
    assert!(Unit::read(unit).seconds("TimeoutStopSec") > stop + Duration::from_secs(3));
}

#[test]
fn systemd_finds_the_units_clean_and_hardened() {
    let folder = TempDir::new().expect("a folder");
    let [service, socket] = ["drip.service", "drip.socket"].map(|name| {
        let unit = fs::read_to_string(source("packaging/systemd").join(name)).expect("a unit");
        // The program is not installed on this machine.
        let unit = unit.replace("/usr/bin/drip", env!("CARGO_BIN_EXE_drip"));
        let file = folder.path().join(name);
        fs::write(&file, unit).expect("a unit");
        file
    });
    let verified = output(
        Command::new("systemd-analyze")
            .args(["verify", "--man=no"])
            .args([&service, &socket]),
    );
    let is_clean = verified.status.success() && verified.stderr.is_empty();
    assert!(is_clean, "{verified:?}");
    let received = run(Command::new("systemd-analyze")
        .args(["security", "--offline=true", "--no-pager"])
        .arg(&service));
    let level = received
        .rsplit_once("drip.service: ")
        .map(|(_, level)| level.split(' ').next());
    let level = level
        .flatten()
        .and_then(|level| level.parse::<f64>().ok())
        .expect("a level");
    assert!(level <= 2.0, "{received}");
}

#[test]
fn the_tarball_has_the_files_of_the_package() {
    let root = Root::new();
    root.install("1.0.0");
    let out = build("1.0.0", "tar");
    let archives = files_below(&out);
    let [archive] = &archives[..] else {
        panic!("{archives:?}")
    };
    let unpacked = TempDir::new().expect("a folder");
    run(Command::new("tar")
        .arg("-C")
        .arg(unpacked.path())
        .arg("-xzf")
        .arg(archive));
    let mut entries = fs::read_dir(unpacked.path()).expect("a folder");
    let folder = entries.next().expect("one").expect("an entry").path();
    assert!(entries.next().is_none(), "one folder has all");
    let below = |folder: &Path, part: &str| {
        let mut all = files_below(&folder.join(part))
            .into_iter()
            .map(|file| file.strip_prefix(folder).expect("below").to_owned())
            .collect::<Vec<_>>();
        all.sort();
        all
    };
    assert_eq!(below(&folder, "usr"), below(&root.path(""), "usr"));
    for file in below(&folder, "etc") {
        assert!(root.path("").join(&file).exists(), "{file:?}");
    }
    let said = run(Command::new(folder.join("usr/bin/drip")).arg("--version"));
    assert!(said.starts_with("drip "), "{said}");
}
