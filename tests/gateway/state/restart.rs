//! Records the arrivals at an origin over one restart of the gateway.

use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::chain::{Chain, excess, gate};
use crate::support::{Client, MARGIN, MS, Origin, all_pass, check_gaps, longest_pause, now};

/// Number of requests of key `a` to the first process, of which 12 still wait at the restart.
pub const BEFORE: usize = 13;

/// Returns the arrivals from both processes, in order.
///
/// Also returns how long the next process took to be ready.
pub fn stamps_over_a_restart(
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
        // The old process accepts no more connections.
        thread::sleep(200 * MS);
        clients.extend(newcomers.iter().map(ask));
    }
    new.wait_until_ready();
    let start_up = began.elapsed();
    if !is_held {
        clients.extend(newcomers.iter().map(ask));
    }
    all_pass(&mut clients);
    assert_eq!(old.wait(Duration::from_secs(10)).code(), Some(0));
    if keeps {
        old.wait_for_line("the state was saved");
        new.wait_for_line("the state of the previous process was restored");
    }
    Chain::stop(&mut new);
    (origin.moments("key="), start_up)
}

/// Returns a zone of 5r/s for each key, and behind it a gate of 10r/s.
///
/// `redis`: the zone is kept in the Redis at this URL.
fn zone_and_gate(origin: &Origin, redis: Option<&str>) -> String {
    let (store, redis) = redis.map_or_else(Default::default, |url| {
        let table = format!("[redis]\nurl = \"{url}\"\ntimeout = \"2s\"\n");
        ("store = \"redis\"\n", table)
    });
    let gate = gate(origin, "10r/s").replace(
        "[[routes]]",
        &format!("{redis}[zones.z]\nkey = \"$arg_key\"\nrate = \"5r/s\"\n{store}\n[[routes]]"),
    );
    format!("{gate}limits = [{{ zone = \"z\", burst = 30 }}]\n")
}

/// Checks that the gates of both processes give the origin one stream with `state`.
///
/// Waiters of the old process's zone pass its gate later, one every 200 ms. New requests of other
/// keys do not wait in the zone, and fill the gate of the new process meanwhile. Without `state`
/// the origin must get two streams.
pub fn check_both_gates(is_held: bool, keeps: bool, redis: Option<&str>) {
    let origin = Origin::start();
    let newcomers: Vec<_> = (0..16).map(|key| format!("/?key=new{key}")).collect();
    let newcomers: Vec<_> = newcomers.iter().map(String::as_str).collect();
    let rest = zone_and_gate(&origin, redis);
    let (stamps, _) = stamps_over_a_restart(is_held, keeps, &rest, &newcomers, &origin);
    assert_eq!(stamps.len(), BEFORE + newcomers.len());
    let most = excess(&stamps, 10.0);
    if !keeps {
        assert!(most > 3.0, "without state only {most} beyond the rate");
        return;
    }
    let pause = longest_pause(stamps[0], stamps[stamps.len() - 1]);
    let slack = (MARGIN + pause).as_secs_f64() * 10.0;
    assert!(most <= 1.0 + slack, "{most} in a window beyond the rate");
    // From the first to the last new request, some request always waits at the new gate.
    let (new, all) = (origin.moments("key=new"), stamps);
    let is_busy = |at: &&Instant| (new[0]..=new[new.len() - 1]).contains(*at);
    let busy: Vec<_> = all.iter().filter(is_busy).copied().collect();
    // An interval before a kept slot may be too short for a departure.
    check_gaps(&busy, 150 * MS, 50 * MS + MARGIN + pause).expect("an even stream");
}
