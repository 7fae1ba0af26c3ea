//! A restart with `state`: the next process goes on where the one before stops.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tempfile::TempDir;

use super::handover::start_on;
use crate::support::{
    Client, Gateway, MARGIN, Origin, Site, alone, check_gaps, drip, fetch, free_address,
    longest_pause, now, one_zone,
};

const MS: Duration = Duration::from_millis(1);

/// What the processes have in common that follow each other.
struct Chain {
    /// Where clients connect.
    address: SocketAddr,
    /// Held as a service manager does; `None`: each process opens its own.
    socket: Option<TcpListener>,
    folder: TempDir,
    /// Whether the file has `state`.
    keeps: bool,
    rest: String,
}

impl Chain {
    fn new(is_held: bool, keeps: bool, rest: &str) -> Self {
        let address = free_address();
        Self {
            address,
            socket: is_held.then(|| TcpListener::bind(address).expect("a socket")),
            folder: TempDir::new().expect("a folder"),
            keeps,
            rest: rest.to_owned(),
        }
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("drip.state")
    }

    /// The next process, which may not be ready yet.
    fn begin(&self) -> Gateway {
        let site = Site::new();
        let path = self.state();
        let state = format!("state = \"{}\"", path.display());
        let state = if self.keeps { &state } else { "" };
        let text = format!(
            "[server]\nlisten = [\"{}\"]\nadmin = \"{}\"\n{state}\n{}",
            self.address, site.admin, self.rest
        );
        fs::write(site.file(), text).expect("a file");
        if let Some(socket) = &self.socket {
            start_on(site, socket.try_clone().expect("a second handle"))
        } else {
            Gateway::run(site)
        }
    }

    fn start(&self) -> Gateway {
        let gateway = self.begin();
        gateway.wait_until_ready();
        gateway
    }

    /// Stops a process and waits for its end.
    fn stop(gateway: &mut Gateway) {
        gateway.signal(Signal::TERM);
        assert_eq!(gateway.wait(Duration::from_secs(20)).code(), Some(0));
    }
}

/// The stamps of 13 requests to one process and 8 to the next, which starts while 12 still wait.
///
/// Also returns how long the next one took to be ready.
fn stamps_over_a_restart(
    is_held: bool,
    keeps: bool,
    rest: &str,
    origin: &Origin,
) -> (Vec<Instant>, Duration) {
    let chain = Chain::new(is_held, keeps, rest);
    let mut old = chain.start();
    let mut clients: Vec<_> = (0..13)
        .map(|_| Client::ask(chain.address, "/?key=a"))
        .collect();
    // All have joined: the last one is behind the first.
    origin.wait_for(1);
    thread::sleep(100 * MS);
    let began = now();
    old.signal(Signal::TERM);
    old.wait_for_line("stopping");
    let mut new = chain.begin();
    let ask = |_| Client::ask(chain.address, "/?key=a");
    if is_held {
        clients.extend((0..8).map(ask));
    }
    new.wait_until_ready();
    let start_up = began.elapsed();
    if !is_held {
        clients.extend((0..8).map(ask));
    }
    for client in &mut clients {
        assert_eq!(client.answer().status, 200);
    }
    assert_eq!(old.wait(Duration::from_secs(10)).code(), Some(0));
    if keeps {
        old.wait_for_line("the state is written");
        new.wait_for_line("the state of the process before is read");
    }
    Chain::stop(&mut new);
    (origin.moments("key=a"), start_up)
}

fn zone(origin: &Origin) -> String {
    one_zone(origin, "5r/s", "burst = 30")
}

fn gate(origin: &Origin, rate: &str) -> String {
    format!(
        "[origins.app]\nservers = [\"http://{}\"]\nrate = \"{rate}\"\nqueue = 100\n\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n",
        origin.address
    )
}

/// Over a restart, a zone or a gate of 5r/s gives the origin one even stream with `state`, and two
/// streams at once without it.
fn check_one_stream(is_held: bool, rest: fn(&Origin) -> String) {
    let _alone = alone();
    for keeps in [true, false] {
        let origin = Origin::start();
        let rest = rest(&origin);
        let (stamps, start_up) = stamps_over_a_restart(is_held, keeps, &rest, &origin);
        assert_eq!(stamps.len(), 21);
        let most = excess(&stamps, 5.0);
        if !keeps {
            assert!(most > 3.0, "without state only {most} beyond the rate");
            continue;
        }
        let pause = longest_pause(stamps[0], stamps[20]);
        // The queue of 2.4 s bridges the start, unless that takes longer.
        let bridged = start_up.saturating_sub(2_000 * MS);
        let slack = MARGIN + pause + bridged;
        check_gaps(&stamps, 200 * MS, slack).expect("one even stream");
        let slack = (MARGIN + pause).as_secs_f64() * 5.0;
        assert!(most <= 1.0 + slack, "{most} in a window beyond the rate");
    }
}

#[test]
fn newcomers_at_a_zone_leave_behind_those_who_wait_in_the_process_before() {
    check_one_stream(true, zone);
}

#[test]
fn so_they_do_where_each_process_opens_its_own_socket() {
    check_one_stream(false, zone);
}

#[test]
fn newcomers_at_a_gate_leave_behind_those_who_wait_in_the_process_before() {
    check_one_stream(true, |origin| gate(origin, "5r/s"));
}

#[test]
fn a_request_whose_head_comes_after_the_state_was_written_gets_503() {
    let files: [fn(&Origin) -> String; 2] = [zone, |origin| gate(origin, "5r/s")];
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

/// The most requests in any window beyond `rate` times its length.
#[allow(clippy::cast_precision_loss)]
fn excess(stamps: &[Instant], per_second: f64) -> f64 {
    // From each stamp on: the least that the line of the rate was above the count so far.
    let (mut least, mut most) = (f64::MAX, 0.0_f64);
    for (nth, at) in stamps.iter().enumerate() {
        let line = nth as f64 - at.duration_since(stamps[0]).as_secs_f64() * per_second;
        least = least.min(line);
        most = most.max(line + 1.0 - least);
    }
    most
}

/// The stamps at the origin, and the longest time from a signal to stop until the next process was
/// ready.
fn stamps_under_load(
    restarts: usize,
    keeps: bool,
    rest: &str,
    origin: &Origin,
) -> (Vec<Instant>, Duration) {
    let chain = Chain::new(true, keeps, rest);
    let mut old = chain.start();
    let over = Arc::new(AtomicBool::new(false));
    let address = chain.address;
    let crowd: Vec<_> = (0..30)
        .map(|_| {
            let over = Arc::clone(&over);
            thread::spawn(move || {
                while !over.load(Ordering::SeqCst) {
                    match fetch(address, "/?key=a").status {
                        200 => {}
                        // It would otherwise be a flood.
                        429 | 503 => thread::sleep(20 * MS),
                        other => panic!("{other}"),
                    }
                }
            })
        })
        .collect();
    let mut longest = Duration::ZERO;
    for _restart in 0..restarts {
        thread::sleep(700 * MS);
        let began = now();
        old.signal(Signal::TERM);
        old.wait_for_line("stopping");
        let new = chain.start();
        longest = longest.max(began.elapsed());
        assert_eq!(old.wait(Duration::from_secs(20)).code(), Some(0));
        old = new;
    }
    thread::sleep(700 * MS);
    let stamps = origin.moments("key=a");
    over.store(true, Ordering::SeqCst);
    for one in crowd {
        one.join().expect("all are answered");
    }
    Chain::stop(&mut old);
    (stamps, longest)
}

/// Restarts under load keep the bound of 20r/s over all windows, and leave no gap, with `state`;
/// without it they exceed the bound.
fn check_under_load(rest: fn(&Origin) -> String) {
    let _alone = alone();
    let origin = Origin::start();
    let (stamps, start_up) = stamps_under_load(6, true, &rest(&origin), &origin);
    let ends = stamps.first().zip(stamps.last()).expect("requests");
    let pause = longest_pause(*ends.0, *ends.1);
    // A stamp may be late by a pause of the machine, those behind it not: one more in a window.
    let slack = (MARGIN + pause).as_secs_f64() * 20.0;
    let most = excess(&stamps, 20.0);
    assert!(most <= 1.0 + slack, "{most} in a window beyond the rate");
    // The queue of a second bridges the start, unless that takes longer.
    let bridged = start_up.saturating_sub(800 * MS);
    let gap = stamps.windows(2).map(|pair| pair[1] - pair[0]).max();
    let gap = gap.expect("requests");
    assert!(
        gap <= 100 * MS + MARGIN + pause + bridged,
        "a gap of {gap:?}, with a start of {start_up:?}"
    );

    let origin = Origin::start();
    let (stamps, _) = stamps_under_load(2, false, &rest(&origin), &origin);
    let without = excess(&stamps, 20.0);
    assert!(
        without > 1.0 + slack && without > 10.0,
        "without state only {without} beyond the rate"
    );
}

#[test]
fn restarts_under_load_keep_the_bound_of_a_zone_in_all_windows() {
    check_under_load(|origin| one_zone(origin, "20r/s", "burst = 19"));
}

#[test]
fn restarts_under_load_keep_the_bound_of_a_gate_in_all_windows() {
    check_under_load(|origin| gate(origin, "20r/s").replace("queue = 100", "queue = 19"));
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
