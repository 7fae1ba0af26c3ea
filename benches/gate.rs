//! Measures whether many waiting keys make departures from the gate slower.

#[allow(dead_code, reason = "other benches use the rest")]
#[path = "support/measure.rs"]
mod measure;

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gateway::gate::KeyAtGate;
use gateway::origin::{Dialer, Origin};
use limit::{Admission, Cost, Gate, GateLimits, Moment, Share, WaitLimits};

use measure::Bench;

const START: Moment = Moment::from_nanos(1_700_000_000_000_000_000);

/// The limits of requests that never wait.
const WAIT: WaitLimits = WaitLimits {
    queue_timeout: Duration::from_secs(5),
    hold: Duration::ZERO,
    max_wait: None,
};

type Key = Arc<[u8]>;

fn limits() -> GateLimits {
    GateLimits {
        rate: Some("1000r/s".parse().expect("a rate")),
        max_in_flight: None,
        queue: Some(1_000_000),
        max_queue: 10_000_000,
    }
}

fn key(number: u32) -> Key {
    Key::from(format!("192.0.2.{number}").as_bytes())
}

/// Returns a gate at which two requests of each key wait.
fn full(keys: u32) -> Gate<Key, ()> {
    let mut gate = Gate::new(limits());
    for _ in 0..2 {
        for number in 0..keys {
            gate.join(&Share::of(key(number)), Cost::ONE, START, || ());
        }
    }
    gate
}

fn gates(bench: &Bench) {
    for keys in [10, 1_000, 100_000] {
        let name = |what| format!("gate of {keys} keys: {what}");
        let (mut gate, mut now) = (full(keys), START);
        bench.time(&name("take who is due, whose key joins again"), || {
            now = now + Duration::from_millis(1);
            let release = gate.take(now).expect("one is due");
            let share = Share::of(release.key);
            gate.join(&share, Cost::ONE, now, || ())
        });
        let (gate, new) = (full(keys), Share::of(key(u32::MAX)));
        bench.time(&name("predict the wait of a new key"), || {
            gate.predict(&new, START)
        });
        let known = Share::of(key(keys / 2));
        bench.time(&name("predict the wait of a key that waits"), || {
            gate.predict(&known, START)
        });
        let mut gate = gate;
        bench.time(&name("join, and leave again"), || {
            let joined = gate.join(&new, Cost::ONE, START, || ());
            let Admission::Waiting(position) = joined else {
                return;
            };
            black_box(gate.leave(&position));
        });
    }
}

/// Measures a gate without waiters: a request joins, and returns its permit.
fn open_gate(bench: &Bench) {
    const FILE: &str = r#"
[origins.app]
servers = ["http://127.0.0.1:9000"]
max_in_flight = 1000
share = "key"

[zones.key]
key = "$remote_addr"
rate = "1r/s"

[[routes]]
path = "/"
origin = "app"
"#;
    let settings = config::parse(FILE, Path::new("gateway.toml"), false).expect("a good file");
    let origin = Origin::new(settings.origins[0].clone(), None, &Dialer::default());
    let gate = origin.gate().expect("the file has one");
    let key = KeyAtGate {
        zone: Some("key".into()),
        key: key(1),
    };
    bench.time("pass an open gate, and give the place back", || {
        gate.join(
            false,
            || Share::of(key.clone()),
            Cost::ONE,
            &WAIT,
            false,
            Duration::ZERO,
        )
    });
    bench.time(
        "ask an open gate whether a request would be rejected",
        || gate.predict_rejection(|| Share::of(key.clone()), || WAIT),
    );
}

/// Measures the memory of a key at the gate, without its waiters.
fn memory() {
    const KEYS: u32 = 100_000;
    let keys: Vec<Key> = (0..KEYS).map(key).collect();
    let fill = |all: &[Key], times: u32| {
        let mut gate = Gate::new(limits());
        let before = resident();
        for _ in 0..times {
            for key in all {
                gate.join(&Share::of(Arc::clone(key)), Cost::ONE, START, || ());
            }
        }
        (resident().saturating_sub(before), gate)
    };
    // Compares the same number of waiters of one key and of as many keys.
    let (one, first) = fill(&vec![Arc::clone(&keys[0]); keys.len()], 1);
    let (each, second) = fill(&keys, 1);
    let a_key = each.saturating_sub(one) / u64::from(KEYS);
    println!("gate of {KEYS} keys: {a_key} bytes a key beside its waiters and its text");
    drop((first, second));
}

/// Returns this process's resident memory, in bytes.
fn resident() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = pages
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or_default() * 4096
}

fn main() {
    let bench = Bench::from_arguments();
    memory();
    gates(&bench);
    open_gate(&bench);
}
