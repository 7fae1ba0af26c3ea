//! Tests of logs that are renamed while the gateway runs, as logrotate does.

use std::fs::{self, File};
use std::path::PathBuf;

use rustix::process::Signal;

use crate::support::{Gateway, HoldingOrigin, Origin, assert_contains, eventually, one_zone};

/// Starts a gateway that logs to `access.log`. Returns the paths of that file and a renamed one.
fn logging(origin: &Origin) -> (Gateway, PathBuf, PathBuf) {
    let file = one_zone(origin, "1000r/s", "burst = 9") + "[log]\naccess = \"access.log\"\n";
    let gateway = Gateway::start(&file);
    let folder = gateway.site.folder().to_owned();
    (
        gateway,
        folder.join("access.log"),
        folder.join("access.log.1"),
    )
}

/// Sends a request for `target` and waits until `log` has it.
fn request_logged_in(gateway: &Gateway, target: &str, log: &PathBuf) {
    assert_eq!(gateway.fetch(target).status, 200);
    eventually(&format!("{target} is in {}", log.display()), || {
        fs::read_to_string(log).is_ok_and(|text| text.contains(&format!("GET {target} ")))
    });
}

#[test]
fn sigusr1_follows_a_renamed_log_and_reads_no_file() {
    let origin = Origin::start();
    let (gateway, log, renamed) = logging(&origin);
    request_logged_in(&gateway, "/before", &log);
    fs::rename(&log, &renamed).expect("a file");
    request_logged_in(&gateway, "/renamed", &renamed);
    gateway.signal(Signal::USR1);
    gateway.wait_for_line("the access log was reopened");
    request_logged_in(&gateway, "/after", &log);
    let old = fs::read_to_string(&renamed).expect("a file");
    assert_eq!(old.lines().count(), 2, "{old}");
    assert!(!gateway.log().contains("in force"), "{}", gateway.log());
    // A folder cannot be opened as a file: lines go to the old file until the new one can be
    // opened.
    fs::rename(&log, &renamed).expect("a file");
    fs::create_dir(&log).expect("a folder");
    gateway.signal(Signal::USR1);
    gateway.wait_for_line("the access log cannot be reopened");
    request_logged_in(&gateway, "/kept", &renamed);
    fs::remove_dir(&log).expect("a folder");
    gateway.signal(Signal::USR1);
    let is_open = || gateway.fetch("/again").status == 200 && log.exists();
    eventually("it is opened again", is_open);
    request_logged_in(&gateway, "/new", &log);
}

#[test]
fn sighup_follows_a_renamed_log_also_with_a_broken_file() {
    let origin = Origin::start();
    let (gateway, log, renamed) = logging(&origin);
    request_logged_in(&gateway, "/before", &log);
    fs::rename(&log, &renamed).expect("a file");
    fs::write(gateway.site.file(), "[server\n").expect("a file");
    gateway.wait_for_line("the file has errors");
    assert!(!log.exists(), "a broken file alone opens no log");
    gateway.signal(Signal::HUP);
    gateway.wait_for_line("the access log was reopened");
    request_logged_in(&gateway, "/after", &log);
    let old = fs::read_to_string(&renamed).expect("a file");
    assert!(old.contains("/before") && !old.contains("/after"), "{old}");
}

#[test]
fn a_log_is_followed_while_the_gateway_stops() {
    let held = HoldingOrigin::of("last");
    let (mut gateway, log, renamed) = logging(&held.origin);
    let mut client = gateway.ask("/last");
    held.origin.wait_for(1);
    gateway.signal(Signal::TERM);
    gateway.wait_for_line("stopping");
    fs::rename(&log, renamed).expect("a file");
    gateway.signal(Signal::USR1);
    gateway.wait_for_line("the access log was reopened");
    held.release("/last");
    assert_eq!(client.answer().status, 200);
    assert_eq!(gateway.wait(crate::support::SOON).code(), Some(0));
    let text = fs::read_to_string(log).expect("a new file");
    assert_contains!(text, "GET /last ");
}

#[test]
fn sigusr2_changes_nothing_but_is_logged() {
    let origin = Origin::start();
    let (gateway, log, _) = logging(&origin);
    gateway.signal(Signal::USR2);
    gateway.wait_for_line("SIGUSR2 has no effect");
    request_logged_in(&gateway, "/", &log);
}

#[test]
fn a_log_that_is_copied_and_cut_goes_on_at_its_beginning() {
    let origin = Origin::start();
    let (gateway, log, _) = logging(&origin);
    request_logged_in(&gateway, "/before", &log);
    // Truncates as logrotate does with `copytruncate`.
    let file = File::options().write(true).open(&log).expect("a file");
    file.set_len(0).expect("cut");
    request_logged_in(&gateway, "/after", &log);
    let text = fs::read_to_string(&log).expect("a file");
    let is_later = text.starts_with("127.0.0.1 ") && !text.contains("/before");
    assert!(is_later, "{text:?}");
}

#[test]
fn a_route_may_have_no_lines_in_the_access_log() {
    let origin = Origin::start();
    let file = one_zone(&origin, "1000r/s", "burst = 9")
        + "[[routes]]\npath = \"/assets/\"\norigin = \"app\"\naccess_log = false\n\
           [[routes]]\npath = \"/trap/\"\nrefuse = 404\naccess_log = false\n\
           [log]\naccess = \"access.log\"\n";
    let gateway = Gateway::start(&file);
    assert_eq!(gateway.fetch("/assets/a.css").status, 200);
    assert_eq!(gateway.fetch("/trap/a").status, 404);
    let log = gateway.site.folder().join("access.log");
    request_logged_in(&gateway, "/page", &log);
    let text = fs::read_to_string(&log).expect("a file");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert_eq!(gateway.requests("/assets/", "200"), 1);
}
