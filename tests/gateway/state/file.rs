//! The file itself: when it is written, what it keeps, and who may use it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::thread;
use std::time::Duration;

use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::Signal;
use tempfile::TempDir;

use super::{Chain, MS, Rest, gate, zone};
use crate::support::{Client, Gateway, Origin, Site, drip, fetch, free_address, one_zone};

#[test]
fn a_request_whose_head_comes_after_the_state_was_written_gets_503() {
    let files: [Rest; 2] = [zone, |origin| gate(origin, "5r/s")];
    for keeps in [true, false] {
        for rest in files {
            let origin = Origin::start();
            let chain = Chain::new(false, keeps, &rest(&origin));
            let mut gateway = chain.start();
            let mut waiting: Vec<_> = (0..8)
                .map(|_| Client::ask(chain.address, "/?key=a"))
                .collect();
            let mut late = Client::connect(chain.address);
            late.send(b"GET /?key=late HTTP/1.1\r\n");
            origin.wait_for(1);
            gateway.signal(Signal::TERM);
            gateway.wait_for_line("stopping");
            if keeps {
                gateway.wait_for_line("the state is written");
            } else {
                // Connections learn of the stop a moment after the line.
                thread::sleep(100 * MS);
            }
            late.send(b"Host: test\r\n\r\n");
            let answer = late.answer();
            // On a busy machine the rest of the head may come after the time for a first request.
            let is_too_late = keeps && answer.status == 408;
            // Without `state`, nobody counts on what it would change.
            let expected = if keeps { 503 } else { 200 };
            assert!(answer.status == expected || is_too_late, "{answer:?}");
            assert_eq!(answer.field("connection"), Some("close"));
            assert_eq!(answer.field("retry-after").is_some(), keeps && !is_too_late);
            for client in &mut waiting {
                assert_eq!(client.answer().status, 200);
            }
            assert_eq!(gateway.wait(Duration::from_secs(10)).code(), Some(0));
            assert_eq!(origin.moments("key=late").is_empty(), keeps);
        }
    }
}

/// A zone for each algorithm, at which five requests of a key pass in a day.
fn algorithms(origin: &Origin) -> String {
    let zone = |(name, limit): (&str, &str)| {
        format!(
            "[zones.{name}]\nkey = \"$arg_key\"\nrate = \"5r/d\"\nalgorithm = \"{name}\"\n\
             [[routes]]\npath = \"/{name}\"\norigin = \"app\"\n\
             limits = [{{ zone = \"{name}\"{limit} }}]\n"
        )
    };
    let limits = [", burst = 4, nodelay = true", ", burst = 5", "", "", ""];
    let zones: String = ALGORITHMS.into_iter().zip(limits).map(zone).collect();
    format!(
        "[origins.app]\nservers = [\"http://{}\"]\n{zones}",
        origin.address
    )
}

const ALGORITHMS: [&str; 5] = [
    "leaky_bucket",
    "token_bucket",
    "fixed_window",
    "sliding_window_log",
    "sliding_window_counter",
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
        for zone in ALGORITHMS {
            for _request in 0..5 {
                assert_eq!(status(&chain, zone, "a"), 200, "{zone}");
            }
            assert_eq!(status(&chain, zone, "a"), 429, "{zone}");
        }
        Chain::stop(&mut gateway);
        let mut gateway = chain.start();
        for zone in ALGORITHMS {
            let again = if keeps { 429 } else { 200 };
            assert_eq!(status(&chain, zone, "a"), again, "{zone}");
            assert_eq!(status(&chain, zone, "b"), 200, "{zone}");
        }
        if keeps {
            let line = gateway.wait_for_line("the state of the process before is read");
            assert!(line.contains("keys=5 zones=5 gates=0"), "{line}");
        }
        Chain::stop(&mut gateway);
        assert_eq!(chain.state().exists(), keeps);
    }
}

#[test]
fn the_file_is_for_this_user_only_and_a_broken_one_is_told_and_ignored() {
    let origin = Origin::start();
    let chain = Chain::new(false, true, &one_zone(&origin, "5r/d", "burst = 0"));
    let mut gateway = chain.start();
    assert_eq!(fetch(chain.address, "/?key=a").status, 200);
    assert_eq!(fetch(chain.address, "/?key=a").status, 429);
    Chain::stop(&mut gateway);
    let whole = fs::read(chain.state()).expect("a file");
    let mode = fs::metadata(chain.state()).expect("a file").permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);

    let mut other = whole.clone();
    let middle = other.len() / 2;
    other[middle] ^= 1;
    let version = String::from_utf8(whole.clone())
        .expect("a text")
        .replacen("0001", "0009", 1);
    for (text, why) in [
        (other, "its checksum is wrong"),
        (whole[..middle].to_vec(), "it is cut short"),
        (whole[..7].to_vec(), "it is cut short"),
        (version.into_bytes(), "it is of version 9"),
    ] {
        fs::write(chain.state(), text).expect("a file");
        let gateway = chain.start();
        let line = gateway.wait_for_line("the state file is ignored");
        assert!(line.contains(why), "{line}");
        assert_eq!(fetch(chain.address, "/?key=a").status, 200, "{why}");
        // Killed, it leaves the file as it was.
        drop(gateway);
    }
    fs::write(chain.state(), whole).expect("a file");
    let gateway = chain.start();
    assert_eq!(fetch(chain.address, "/?key=a").status, 429);
    drop(gateway);
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
    for (chain, why) in [(&chain, "something else in it"), (&pipe, "no regular file")] {
        let mut gateway = chain.start();
        let line = gateway.wait_for_line("a restart forgets all levels");
        assert!(line.contains(why), "{line}");
        assert_eq!(fetch(chain.address, "/?key=a").status, 200);
        Chain::stop(&mut gateway);
    }
    let left = fs::read_to_string(chain.state()).expect("a file");
    assert_eq!(left, text);
    let left = fs::metadata(pipe.state()).expect("a pipe").file_type();
    assert!(left.is_fifo());
}

#[test]
fn a_state_that_cannot_have_its_place_leaves_only_the_lock() {
    let origin = Origin::start();
    let chain = Chain::new(false, true, &one_zone(&origin, "5r/d", "burst = 0"));
    let mut gateway = chain.start();
    assert_eq!(fetch(chain.address, "/?key=a").status, 200);
    fs::create_dir(chain.state()).expect("a folder");
    Chain::stop(&mut gateway);
    let log = gateway.whole_log();
    assert!(log.contains("the state cannot be written: "), "{log}");
    let state = chain.state().file_name().expect("a name").to_owned();
    let beside = fs::read_dir(chain.state().parent().expect("a folder")).expect("a folder");
    let names = beside.flatten().map(|it| it.file_name());
    let is_of_state = |name: &OsString| name.as_bytes().starts_with(state.as_bytes());
    let mut names: Vec<OsString> = names.filter(is_of_state).collect();
    names.sort();
    let mut lock = state.clone();
    lock.push(".lock");
    assert_eq!(names, [state, lock]);
}

#[test]
fn a_second_signal_waits_until_the_state_is_written() {
    let origin = Origin::start();
    let chain = Chain::new(false, true, &one_zone(&origin, "5r/d", "burst = 1"));
    let mut gateway = chain.start();
    assert_eq!(fetch(chain.address, "/?key=a").status, 200);
    // It waits for hours, and nobody else may.
    let _waiting = Client::ask(chain.address, "/?key=a");
    gateway.wait_for_depth(1);
    assert_eq!(fetch(chain.address, "/?key=a").status, 429);
    // With an open connection, the state is not written at once.
    let _idle = Client::connect(chain.address);
    gateway.signal(Signal::TERM);
    gateway.wait_for_line("stopping");
    gateway.signal(Signal::TERM);
    assert_eq!(gateway.wait(Duration::from_secs(5)).code(), Some(0));
    gateway.wait_for_line("the state is written");
    let mut gateway = chain.start();
    assert_eq!(fetch(chain.address, "/?key=a").status, 429);
    assert_eq!(fetch(chain.address, "/?key=b").status, 200);
    Chain::stop(&mut gateway);
}

#[test]
fn of_two_gateways_with_one_file_the_second_is_told_and_leaves_it_alone() {
    let origin = Origin::start();
    let chain = Chain::new(true, true, &one_zone(&origin, "5r/d", "burst = 0"));
    let mut first = chain.start();
    assert_eq!(fetch(chain.address, "/?key=a").status, 200);
    let other = Chain {
        address: free_address(),
        socket: None,
        rest: chain.rest.clone(),
        keeps: true,
        folder: chain.folder,
    };
    let mut second = other.begin();
    second.wait_for_line("waiting until the process before has written the state");
    // It waits for ten seconds, in case the first one stops.
    thread::sleep(Duration::from_secs(9));
    second.wait_for_line("another process uses the state file: this one starts without it");
    second.wait_until_ready();
    assert_eq!(fetch(other.address, "/?key=a").status, 200);
    assert_eq!(fetch(other.address, "/?key=a").status, 429);
    Chain::stop(&mut second);
    second.wait_for_line("another process uses the state file: this one writes none");
    assert!(!other.state().exists());
    Chain::stop(&mut first);
    let line = first.wait_for_line("the state is written");
    assert!(line.contains("keys=1"), "{line}");
    assert!(other.state().exists());
}

/// A start that waits for the process before ends at the first signal.
#[test]
fn a_start_that_waits_for_the_lock_ends_at_once() {
    let origin = Origin::start();
    let chain = Chain::new(false, true, &one_zone(&origin, "5r/d", "burst = 0"));
    let first = chain.start();
    let other = Chain {
        address: free_address(),
        socket: None,
        rest: chain.rest.clone(),
        keeps: true,
        folder: chain.folder,
    };
    for signal in [Signal::TERM, Signal::INT] {
        let mut second = other.begin();
        second.wait_for_line("waiting until the process before has written the state");
        second.signal(signal);
        // It would wait for ten seconds.
        assert_eq!(second.wait(Duration::from_secs(5)).code(), Some(0));
        let log = second.whole_log();
        assert!(log.contains("stopped before the gateway listens"), "{log}");
        assert!(!log.contains("listening"), "{log}");
    }
    drop(first);
}

/// A link into a volume stays one, and a gateway that has the file by its own name waits for it.
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
    let by_link = std::mem::replace(&mut chain.folder, volume);
    let second = chain.begin();
    second.wait_for_line("waiting until the process before has written the state");
    drop((second, by_link));
}

#[test]
fn zones_that_are_left_out_are_named_at_the_start() {
    let origin = Origin::start();
    let zones = |names: &[String], key: &str| {
        let each = names.iter().map(|name| {
            format!(
                "[zones.{name}]\nkey = \"{key}\"\nrate = \"5r/d\"\n[[routes]]\npath = \"/{name}\"\n\
                 origin = \"app\"\nlimits = [{{ zone = \"{name}\" }}]\n"
            )
        });
        let each: String = each.collect();
        let address = origin.address;
        format!("[origins.app]\nservers = [\"http://{address}\"]\n{each}")
    };
    let names: Vec<String> = (0..7).map(|nth| format!("z{nth}")).collect();
    let mut chain = Chain::new(false, true, &zones(&names, "$arg_key"));
    let mut gateway = chain.start();
    for name in &names[..6] {
        assert_eq!(fetch(chain.address, &format!("/{name}?key=a")).status, 200);
    }
    Chain::stop(&mut gateway);
    let kept = fs::read(chain.state()).expect("a file");
    for (now, key, left) in [
        (&names[..], "$arg_key", None),
        // The last one has no keys.
        (&names[..6], "$arg_key", None),
        (
            &names[1..],
            "$arg_key",
            Some("zones=1 keys=1 first=[\"z0\"]"),
        ),
        (
            &names[..],
            "$host",
            Some("zones=6 keys=6 first=[\"z0\", \"z1\", \"z2\", \"z3\", \"z4\"]"),
        ),
    ] {
        fs::write(chain.state(), &kept).expect("a file");
        chain.rest = zones(now, key);
        let gateway = chain.start();
        gateway.wait_for_line("the state of the process before is read");
        if let Some(left) = left {
            let line = gateway.wait_for_line("zones of the process before are left out");
            assert!(line.contains(left), "{line}");
        } else {
            assert!(!gateway.log().contains("left out"), "{}", gateway.log());
        }
    }
}

#[test]
fn a_folder_that_is_not_there_is_a_warning_and_the_gateway_serves() {
    let origin = Origin::start();
    let site = Site::new();
    let rest = one_zone(&origin, "5r/d", "burst = 0");
    site.write(&format!("state = \"missing/drip.state\"\n{rest}"));
    let checked = drip()
        .arg("check")
        .arg("-c")
        .arg(site.file())
        .output()
        .expect("it runs");
    assert!(checked.status.success());
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(said.contains("no file can be written in"), "{said}");
    let mut gateway = Gateway::run(site);
    gateway.wait_until_ready();
    gateway.wait_for_line("the state file cannot be used");
    assert_eq!(fetch(gateway.address(), "/?key=a").status, 200);
    Chain::stop(&mut gateway);
}
