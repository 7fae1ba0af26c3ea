//! Detects pauses of a busy machine, so that close measurements can be repeated.

use std::collections::VecDeque;
use std::panic::panic_any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once};
use std::thread;
use std::time::{Duration, Instant};

use super::{MS, now};

/// An unexpected pause of this length means that the machine is busy with something else.
pub const BUSY: Duration = Duration::from_millis(3);

/// Maximum wait for a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Repeats a close measurement until it passes. Fails after three failed measurements.
///
/// For some time, measurements that another program may have disturbed do not count.
pub fn best_of_three(measure: impl Fn(usize) -> Result<(), String>) {
    let began = now();
    let (mut failures, mut counted) = (Vec::new(), 0);
    for attempt in 0.. {
        let (measured, pause) = watching(|| measure(attempt));
        let Err(failure) = measured else {
            return;
        };
        failures.push(format!("{failure} (the longest pause was {pause:?})"));
        counted += usize::from(pause <= BUSY);
        if counted == 3 || began.elapsed() > PATIENCE {
            break;
        }
    }
    panic_any(format!(
        "{} measurements, none right, and {counted} of them undisturbed:\n{}",
        failures.len(),
        failures.join("\n")
    ));
}

/// Sets a flag when work is done or has failed, so that tasks beside it end.
pub struct Done<'a>(pub &'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Returns the longest pause of a thread that runs every millisecond during `work`.
pub fn watching<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut longest = Duration::ZERO;
            while !done.load(Ordering::Relaxed) {
                longest = longest.max(pause());
            }
            longest
        });
        let working = Done(&done);
        let worked = work();
        drop(working);
        (worked, watch.join().expect("no panic"))
    })
}

/// Returns the time by which a thread slept longer than requested.
fn pause() -> Duration {
    let before = now();
    thread::sleep(MS);
    before.elapsed().saturating_sub(MS)
}

/// Pauses of a thread that runs every millisecond: instant of the end, and duration.
static PAUSES: Mutex<VecDeque<(Instant, Duration)>> = Mutex::new(VecDeque::new());
/// Number of recorded pauses.
const REMEMBERED: usize = 10_000;

/// Starts to record the pauses of this process.
pub fn note_pauses() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        thread::spawn(|| {
            loop {
                let pause = pause();
                if pause > BUSY {
                    let mut pauses = PAUSES.lock().expect("no panic");
                    pauses.push_back((now(), pause));
                    if pauses.len() > REMEMBERED {
                        pauses.pop_front();
                    }
                }
            }
        });
    });
}

/// Returns the longest [recorded](note_pauses) pause between two instants.
pub fn longest_pause(from: Instant, to: Instant) -> Duration {
    pauses(from, to).into_iter().max().unwrap_or_default()
}

/// Returns the sum of all [recorded](note_pauses) pauses between two instants.
pub fn all_pauses(from: Instant, to: Instant) -> Duration {
    pauses(from, to).into_iter().sum()
}

fn pauses(from: Instant, to: Instant) -> Vec<Duration> {
    let pauses = PAUSES.lock().expect("no panic");
    let within = pauses
        .iter()
        .filter(|(ended, pause)| *ended >= from && *ended <= to + *pause);
    within.map(|(_, pause)| *pause).collect()
}
