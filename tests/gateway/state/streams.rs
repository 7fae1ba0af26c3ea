//! One even stream at the origin, through one restart.

use std::panic::catch_unwind;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::{Chain, MS, Rest, excess, gate, side_by_side, zone};
use crate::support::redis::Redis;
use crate::support::{Client, MARGIN, Origin, best_of_three, check_gaps, longest_pause, now};

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
    // A process that gets no time is late with a departure, and the other one cannot know.
    best_of_three(|_| {
        let measured = catch_unwind(old_gate_and_new_gate_are_one_stream);
        measured.map_err(|_| "two streams".to_owned())
    });
}

fn old_gate_and_new_gate_are_one_stream() {
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
