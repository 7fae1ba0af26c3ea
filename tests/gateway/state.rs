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
use crate::support::redis::Redis;
use crate::support::{
    Client, Gateway, MARGIN, Origin, Site, alone, check_gaps, drip, eventually, fetch,
    free_address, gaps, longest_pause, now, one_zone,
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

/// Requests of key `a` to the process before, and what is asked of the next one while 12 of them
/// still wait.
const BEFORE: usize = 13;

/// The stamps of both, all in one order.
///
/// Also returns how long the next process took to be ready.
fn stamps_over_a_restart(
    is_held: bool,
    keeps: bool,
    rest: &str,
    newcomers: &[&str],
    origin: &Origin,
) -> (Vec<Instant>, Duration) {
    let chain = Chain::new(is_held, keeps, rest);
    let mut old = chain.start();
    let mut clients: Vec<_> = (0..BEFORE)
        .map(|_| Client::ask(chain.address, "/?key=a"))
        .collect();
    // All have joined: the last one is behind the first.
    origin.wait_for(1);
    thread::sleep(100 * MS);
    let began = now();
    old.signal(Signal::TERM);
    old.wait_for_line("stopping");
    let mut new = chain.begin();
    let ask = |target: &&str| Client::ask(chain.address, target);
    if is_held {
        // The old process accepts nobody any more.
        thread::sleep(200 * MS);
        clients.extend(newcomers.iter().map(ask));
    }
    new.wait_until_ready();
    let start_up = began.elapsed();
    if !is_held {
        clients.extend(newcomers.iter().map(ask));
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
    (origin.moments("key="), start_up)
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

/// Runs `check` for all cases, each with and without `state`, side by side: they mostly wait.
fn side_by_side<C: Sync>(cases: &[C], check: impl Fn(&C, bool) + Sync) {
    let _alone = alone();
    let check = &check;
    thread::scope(|scope| {
        for case in cases {
            for keeps in [true, false] {
                scope.spawn(move || check(case, keeps));
            }
        }
    });
}

/// What the file has besides its server.
type Rest = fn(&Origin) -> String;

/// Over a restart, a zone or a gate of 5r/s gives the origin one even stream with `state`, and two
/// streams at once without it.
#[test]
fn newcomers_leave_behind_those_who_wait_in_the_process_before() {
    let cases: [(bool, Rest); 3] = [
        (true, zone),
        (false, zone),
        (true, |origin| gate(origin, "5r/s")),
    ];
    side_by_side(&cases, |(is_held, rest), keeps| {
        let origin = Origin::start();
        let rest = rest(&origin);
        let newcomers = ["/?key=a"; 8];
        let (stamps, start_up) = stamps_over_a_restart(*is_held, keeps, &rest, &newcomers, &origin);
        assert_eq!(stamps.len(), 21);
        let most = excess(&stamps, 5.0);
        if !keeps {
            assert!(most > 3.0, "without state only {most} beyond the rate");
            return;
        }
        let pause = longest_pause(stamps[0], stamps[20]);
        // The queue of 2.4 s bridges the start, unless that takes longer.
        let bridged = start_up.saturating_sub(2_000 * MS);
        let slack = MARGIN + pause + bridged;
        check_gaps(&stamps, 200 * MS, slack).expect("one even stream");
        let slack = (MARGIN + pause).as_secs_f64() * 5.0;
        assert!(most <= 1.0 + slack, "{most} in a window beyond the rate");
    });
}

/// A zone of 5r/s for each key, perhaps in Redis, and behind it a gate of 10r/s.
fn zone_and_gate(origin: &Origin, redis: Option<&Redis>) -> String {
    let (store, redis) = redis.map_or_else(Default::default, |redis| {
        let table = format!("[redis]\nurl = \"{}\"\ntimeout = \"2s\"\n", redis.url());
        ("store = \"redis\"\n", table)
    });
    let gate = gate(origin, "10r/s").replace(
        "[[routes]]",
        &format!("{redis}[zones.z]\nkey = \"$arg_key\"\nrate = \"5r/s\"\n{store}\n[[routes]]"),
    );
    format!("{gate}limits = [{{ zone = \"z\", burst = 30 }}]\n")
}

/// Those who still wait in a zone of the old process pass its gate later, each 200 ms; newcomers
/// of other keys need not wait in the zone, and fill the gate of the new process meanwhile.
#[test]
fn who_comes_to_the_old_gate_from_a_zone_has_a_slot_that_the_new_gate_keeps() {
    let cases = [(true, false), (false, false), (true, true)];
    side_by_side(&cases, |(is_held, is_in_redis), keeps| {
        let origin = Origin::start();
        let newcomers: Vec<_> = (0..16).map(|key| format!("/?key=new{key}")).collect();
        let newcomers: Vec<_> = newcomers.iter().map(String::as_str).collect();
        let redis = is_in_redis.then(Redis::start);
        let rest = zone_and_gate(&origin, redis.as_ref());
        let (stamps, _) = stamps_over_a_restart(*is_held, keeps, &rest, &newcomers, &origin);
        assert_eq!(stamps.len(), BEFORE + newcomers.len());
        let most = excess(&stamps, 10.0);
        if !keeps {
            assert!(most > 3.0, "without state only {most} beyond the rate");
            return;
        }
        let pause = longest_pause(stamps[0], stamps[stamps.len() - 1]);
        let slack = (MARGIN + pause).as_secs_f64() * 10.0;
        assert!(most <= 1.0 + slack, "{most} in a window beyond the rate");
        // From the first newcomer to the last one somebody always waits at the new gate.
        let (new, all) = (origin.moments("key=new"), stamps);
        let is_busy = |at: &&Instant| (new[0]..=new[new.len() - 1]).contains(*at);
        let busy: Vec<_> = all.iter().filter(is_busy).copied().collect();
        // An interval before a kept slot may be too short for a departure.
        check_gaps(&busy, 150 * MS, 50 * MS + MARGIN + pause).expect("an even stream");
    });
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

/// Restarts under load.
#[derive(Clone, Copy)]
struct Load {
    is_held: bool,
    /// What the clients ask for, in turn.
    targets: &'static [&'static str],
    restarts: u32,
    /// From when one process is ready to the signal that stops it.
    between: Duration,
}

/// The stamps at the origin, and the longest time from a signal to stop until the next process was
/// ready.
fn stamps_under_load(
    load: Load,
    keeps: bool,
    rest: &str,
    origin: &Origin,
) -> (Vec<Instant>, Duration) {
    let chain = Chain::new(load.is_held, keeps, rest);
    let mut old = chain.start();
    let over = Arc::new(AtomicBool::new(false));
    let address = chain.address;
    let crowd: Vec<_> = (0..30)
        .map(|client| {
            let over = Arc::clone(&over);
            let target = load.targets[client % load.targets.len()];
            thread::spawn(move || {
                while !over.load(Ordering::SeqCst) {
                    match Client::try_fetch(address, target).map(|answer| answer.status) {
                        Ok(200) => {}
                        // It would otherwise be a flood.
                        Ok(429 | 503) => thread::sleep(20 * MS),
                        // Nobody listens between two processes.
                        Err(_) if !load.is_held => thread::sleep(20 * MS),
                        other => panic!("{other:?}"),
                    }
                }
            })
        })
        .collect();
    let mut longest = Duration::ZERO;
    for _restart in 0..load.restarts {
        thread::sleep(load.between);
        let began = now();
        old.signal(Signal::TERM);
        old.wait_for_line("stopping");
        let new = chain.start();
        longest = longest.max(began.elapsed());
        assert_eq!(old.wait(Duration::from_secs(20)).code(), Some(0));
        old = new;
    }
    thread::sleep(load.between);
    let stamps = origin.moments("key=");
    over.store(true, Ordering::SeqCst);
    for one in crowd {
        one.join().expect("all are answered");
    }
    Chain::stop(&mut old);
    (stamps, longest)
}

/// Restarts under load keep the bound of 20r/s over all windows, and leave no gap, with `state`;
/// without it they exceed the bound.
fn check_under_load(cases: &[(Load, Rest)]) {
    side_by_side(cases, |(load, rest), keeps| {
        let origin = Origin::start();
        let (load, rest) = (*load, rest(&origin));
        if !keeps {
            let few = Load {
                restarts: 2,
                ..load
            };
            let (stamps, _) = stamps_under_load(few, false, &rest, &origin);
            let without = excess(&stamps, 20.0);
            assert!(
                without > 5.0,
                "without state only {without} beyond the rate"
            );
            return;
        }
        let (stamps, start_up) = stamps_under_load(load, true, &rest, &origin);
        let ends = stamps.first().zip(stamps.last()).expect("requests");
        let pause = longest_pause(*ends.0, *ends.1);
        // A stamp may be late by a pause of the machine, those behind it not: one more in a window.
        let slack = (MARGIN + pause).as_secs_f64() * 20.0;
        let most = excess(&stamps, 20.0);
        // The queue of a second bridges the start, unless that takes longer.
        let bridged = start_up.saturating_sub(800 * MS);
        let gap = gaps(&stamps).into_iter().max().expect("requests");
        eprintln!(
            "{} requests in {:?}: {most:.2} in a window beyond the rate, the longest gap {gap:?}, \
             the longest start {start_up:?}, the longest pause of the machine {pause:?}",
            stamps.len(),
            *ends.1 - *ends.0,
        );
        assert!(most <= 1.0 + slack, "{most} in a window beyond the rate");
        assert!(
            gap <= 100 * MS + MARGIN + pause + bridged,
            "a gap of {gap:?}, with a start of {start_up:?}"
        );
    });
}

const LOAD: Load = Load {
    is_held: true,
    targets: &["/?key=a"],
    restarts: 6,
    between: Duration::from_millis(700),
};

/// Half of the clients wait in a zone, whose five keys have 5r/s together, and then at a gate that
/// the others fill.
fn zones_and_gate(origin: &Origin) -> String {
    let gate = gate(origin, "20r/s").replace("queue = 100", "queue = 19");
    format!(
        "{gate}\n[zones.z]\nkey = \"$arg_key\"\nrate = \"1r/s\"\n\n\
         [[routes]]\npath = \"/zone\"\norigin = \"app\"\n\
         limits = [{{ zone = \"z\", burst = 9 }}]\n"
    )
}

const OF_ZONES: &[&str] = &[
    "/?key=free",
    "/zone?key=a",
    "/?key=free",
    "/zone?key=b",
    "/?key=free",
    "/zone?key=c",
    "/?key=free",
    "/zone?key=d",
    "/?key=free",
    "/zone?key=e",
];

#[test]
fn restarts_under_load_keep_the_bound_of_a_zone_or_a_gate_in_all_windows() {
    check_under_load(&[
        (LOAD, |origin| one_zone(origin, "20r/s", "burst = 19")),
        (LOAD, |origin| {
            gate(origin, "20r/s").replace("queue = 100", "queue = 19")
        }),
    ]);
}

#[test]
fn restarts_under_load_keep_the_bound_of_a_gate_behind_zones() {
    let held = Load {
        targets: OF_ZONES,
        restarts: 4,
        ..LOAD
    };
    let own = Load {
        is_held: false,
        ..held
    };
    check_under_load(&[(held, zones_and_gate), (own, zones_and_gate)]);
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
fn a_second_signal_waits_until_the_state_is_written() {
    let origin = Origin::start();
    let chain = Chain::new(false, true, &one_zone(&origin, "5r/d", "burst = 1"));
    let mut gateway = chain.start();
    assert_eq!(fetch(chain.address, "/?key=a").status, 200);
    // It waits for hours, and nobody else may.
    let _waiting = Client::ask(chain.address, "/?key=a");
    eventually("it waits", || fetch(chain.address, "/?key=a").status == 429);
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
