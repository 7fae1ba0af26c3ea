//! Tests of the state file: when it is written, its content, and who may use it.

use std::fs;
use std::ops::Range;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::Signal;
use tempfile::TempDir;

use super::{Chain, MS, Rest, gate, zone};
use crate::gateway::check::{check, text};
use crate::support::{
    self, Client, Gateway, Origin, all_pass, assert_contains, fetch, free_address, one_zone,
};

#[test]
fn a_request_whose_head_comes_after_the_state_was_written_gets_503() {
    let files: [Rest; 2] = [zone, |origin| gate(origin, "5r/s")];
    let cases = [(true, files[0]), (true, files[1]), (false, files[0])];
    support::side_by_side(cases, |(keeps, rest)| {
        let origin = Origin::start();
        let chain = Chain::new(false, keeps, &rest(&origin));
        let mut gateway = chain.start();
        let mut waiting = [(); 8].map(|()| Client::ask(chain.address, "/?key=a"));
        let mut late = Client::connect(chain.address);
        late.send(b"GET /?key=late HTTP/1.1\r\n");
        origin.wait_for(1);
        gateway.signal(Signal::TERM);
        gateway.wait_for_line("stopping");
        if keeps {
            gateway.wait_for_line("the state was saved");
        } else {
            // Connections learn of the stop a moment after the log line.
            thread::sleep(100 * MS);
        }
        late.send(b"Host: test\r\n\r\n");
        let answer = late.answer();
        // On a busy machine the rest of the head may arrive after the time limit of a first
        // request.
        let is_too_late = keeps && answer.status == 408;
        // Without `state`, the request is still served.
        let expected = if keeps { 503 } else { 200 };
        assert!(answer.status == expected || is_too_late, "{answer:?}");
        assert_eq!(answer.field("connection"), Some("close"));
        assert_eq!(answer.field("retry-after").is_some(), keeps && !is_too_late);
        all_pass(&mut waiting);
        assert_eq!(gateway.wait(Duration::from_secs(10)).code(), Some(0));
        assert_eq!(origin.moments("key=late").is_empty(), keeps);
    });
}

/// Returns a zone for each algorithm that admits five requests of a key per day.
fn algorithms(origin: &Origin) -> String {
    let zones = ALGORITHMS.map(|(name, _)| {
        let zone = support::zone(name, "$arg_key", "5r/d");
        format!("{zone}algorithm = \"{name}\"\n")
    });
    let routes = ALGORITHMS.map(|(name, limit)| {
        let limits = format!("limits = [{{ zone = \"{name}\"{limit} }}]");
        (format!("/{name}"), limits)
    });
    let routes = routes.each_ref().map(|(path, limits)| (&**path, &**limits));
    support::file(origin, &zones.concat(), &routes)
}

const ALGORITHMS: [(&str, &str); 5] = [
    ("leaky_bucket", ", burst = 4, nodelay = true"),
    ("token_bucket", ", burst = 5"),
    ("fixed_window", ""),
    ("sliding_window_log", ""),
    ("sliding_window_counter", ""),
];

fn status(chain: &Chain, zone: &str, key: &str) -> u16 {
    fetch(chain.address, &format!("/{zone}?key={key}")).status
}

#[test]
fn no_algorithm_forgets_and_a_key_that_was_not_used_is_free() {
    for keeps in [true, false] {
        let origin = Origin::start();
        let chain = Chain::new(false, keeps, &algorithms(&origin));
        let mut gateway = chain.start();
        for (zone, _) in ALGORITHMS {
            let statuses = [(); 6].map(|()| status(&chain, zone, "a"));
            assert_eq!(statuses, [200, 200, 200, 200, 200, 429], "{zone}");
        }
        Chain::stop(&mut gateway);
        let mut gateway = chain.start();
        for (zone, _) in ALGORITHMS {
            let again = if keeps { 429 } else { 200 };
            assert_eq!(status(&chain, zone, "a"), again, "{zone}");
            assert_eq!(status(&chain, zone, "b"), 200, "{zone}");
        }
        if keeps {
            let line = gateway.wait_for_line("the state of the previous process was restored");
            assert_contains!(line, "keys=5 zones=5 gates=0");
        }
        Chain::stop(&mut gateway);
        assert_eq!(chain.state().exists(), keeps);
    }
}

#[test]
fn what_is_no_state_file_is_left_alone() {
    let origin = Origin::start();
    let rest = one_zone(&origin, "5r/d", "burst = 0");
    let chain = Chain::new(false, true, &rest);
    let text = "[server]\nlisten = [\"127.0.0.1:8080\"]\n";
    fs::write(chain.state(), text).expect("a file");
    let pipe = Chain::new(false, true, &rest);
    mkfifoat(CWD, pipe.state(), Mode::RUSR | Mode::WUSR).expect("a pipe");
    for (chain, why) in [(&chain, "other content"), (&pipe, "not a regular file")] {
        let mut gateway = chain.start();
        let line = gateway.wait_for_line("a restart forgets all levels");
        assert_contains!(line, why);
        assert_eq!(fetch(chain.address, "/?key=a").status, 200);
        Chain::stop(&mut gateway);
    }
    let left = fs::read_to_string(chain.state()).expect("a file");
    assert_eq!(left, text);
    let left = fs::metadata(pipe.state()).expect("a pipe").file_type();
    assert!(left.is_fifo());
}

#[test]
fn a_second_signal_waits_until_the_state_is_written() {
    let origin = Origin::start();
    let chain = Chain::new(false, true, &one_zone(&origin, "5r/d", "burst = 1"));
    let mut gateway = chain.start();
    assert_eq!(fetch(chain.address, "/?key=a").status, 200);
    // The request waits for hours, and no other one may wait.
    let _waiting = Client::ask(chain.address, "/?key=a");
    gateway.wait_for_depth(1);
    assert_eq!(fetch(chain.address, "/?key=a").status, 429);
    // While a connection is open, the state is not written at once.
    let _idle = Client::connect(chain.address);
    gateway.signal(Signal::TERM);
    gateway.wait_for_line("stopping");
    gateway.signal(Signal::TERM);
    assert_eq!(gateway.wait(Duration::from_secs(5)).code(), Some(0));
    gateway.wait_for_line("the state was saved");
    let mut gateway = chain.start();
    assert_eq!(fetch(chain.address, "/?key=a").status, 429);
    assert_eq!(fetch(chain.address, "/?key=b").status, 200);
    Chain::stop(&mut gateway);
}

#[test]
fn a_second_gateway_with_the_state_file_warns_and_does_not_use_it() {
    let origin = Origin::start();
    let chain = Chain::new(true, true, &one_zone(&origin, "5r/d", "burst = 0"));
    let mut first = chain.start();
    assert_eq!(fetch(chain.address, "/?key=a").status, 200);
    let other = chain.beside();
    let mut second = other.begin();
    second.wait_for_line("waiting until the previous process has written the state");
    // The second process waits for ten seconds, in case the first one stops.
    second.wait_for_line("another process uses the state file: this one starts without it");
    second.wait_until_ready();
    assert_eq!(fetch(other.address, "/?key=a").status, 200);
    assert_eq!(fetch(other.address, "/?key=a").status, 429);
    Chain::stop(&mut second);
    second.wait_for_line("another process uses the state file: this one writes none");
    assert!(!other.state().exists());
    Chain::stop(&mut first);
    let line = first.wait_for_line("the state was saved");
    assert_contains!(line, "keys=1");
    assert!(other.state().exists());
}

/// A start that waits for the previous process ends at the first signal.
#[test]
fn a_start_that_waits_for_the_lock_ends_at_once() {
    let origin = Origin::start();
    let chain = Chain::new(false, true, &one_zone(&origin, "5r/d", "burst = 0"));
    let _first = chain.start();
    let other = chain.beside();
    for signal in [Signal::TERM, Signal::INT] {
        let mut second = other.begin();
        second.wait_for_line("waiting until the previous process has written the state");
        second.signal(signal);
        // Without the signal it would wait for ten seconds.
        assert_eq!(second.wait(Duration::from_secs(5)).code(), Some(0));
        let log = second.whole_log();
        assert_contains!(log, "stopped before the gateway listens");
        assert!(!log.contains("listening"), "{log}");
    }
}

/// A link to the state file is followed, also for its lock.
///
/// A link into a volume stays a link. A gateway that uses the file by its own name waits for the
/// lock.
#[test]
fn a_link_is_followed_to_the_file_and_its_lock() {
    let origin = Origin::start();
    let mut chain = Chain::new(false, true, &one_zone(&origin, "5r/d", "burst = 0"));
    let volume = TempDir::new().expect("a folder");
    let file = volume.path().join("drip.state");
    symlink(&file, chain.state()).expect("a link");
    let is_link = |chain: &Chain| {
        let found = fs::symlink_metadata(chain.state()).expect("a link");
        found.file_type().is_symlink()
    };
    for status in [200, 429] {
        let mut gateway = chain.start();
        assert_eq!(fetch(chain.address, "/?key=a").status, status);
        Chain::stop(&mut gateway);
        assert!(is_link(&chain) && file.is_file());
    }
    let _first = chain.start();
    chain.address = free_address();
    let by_link = std::mem::replace(&mut chain.folder, Arc::new(volume));
    let second = chain.begin();
    second.wait_for_line("waiting until the previous process has written the state");
    drop((second, by_link));
}

#[test]
fn zones_that_are_left_out_are_named_at_the_start() {
    let origin = Origin::start();
    let zones = |numbers: Range<usize>, key: &str| {
        let limits = numbers
            .clone()
            .map(|nth| format!("limits = [{{ zone = \"z{nth}\" }}]"));
        let paths = numbers.clone().map(|nth| format!("/z{nth}"));
        let routes: Vec<_> = paths.zip(limits).collect();
        let routes: Vec<_> = routes
            .iter()
            .map(|(path, limits)| (&**path, &**limits))
            .collect();
        let zones: String = numbers
            .map(|nth| support::zone(&format!("z{nth}"), key, "5r/d"))
            .collect();
        support::file(&origin, &zones, &routes)
    };
    let mut chain = Chain::new(false, true, &zones(0..7, "$arg_key"));
    let mut gateway = chain.start();
    for nth in 0..6 {
        assert_eq!(fetch(chain.address, &format!("/z{nth}?key=a")).status, 200);
    }
    Chain::stop(&mut gateway);
    let kept = fs::read(chain.state()).expect("a file");
    let all = "zones=6 keys=6 first=[\"z0\", \"z1\", \"z2\", \"z3\", \"z4\"]";
    for (now, key, left) in [
        (0..7, "$arg_key", ""),
        // The last one has no keys.
        (0..6, "$arg_key", ""),
        (1..7, "$arg_key", "zones=1 keys=1 first=[\"z0\"]"),
        (0..7, "$host", all),
    ] {
        fs::write(chain.state(), &kept).expect("a file");
        chain.rest = zones(now, key);
        let gateway = chain.start();
        gateway.wait_for_line("the state of the previous process was restored");
        if left.is_empty() {
            assert!(!gateway.log().contains("not restored"), "{}", gateway.log());
        } else {
            let line = gateway.wait_for_line("zones of the previous process were not restored");
            assert_contains!(line, left);
        }
    }
}

#[test]
fn a_folder_that_is_not_there_is_a_warning_and_the_gateway_serves() {
    let origin = Origin::start();
    let rest = one_zone(&origin, "5r/d", "burst = 0");
    let gateway = Gateway::start(&format!("state = \"missing/drip.state\"\n{rest}"));
    gateway.wait_for_line("the state file cannot be used");
    assert_eq!(gateway.fetch("/?key=a").status, 200);
    let checked = check(&gateway.site.file());
    assert!(checked.status.success());
    let said = text(&checked.stderr);
    assert_contains!(said, "no file can be written in");
}
