use std::collections::VecDeque;
use std::panic::panic_any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once};
use std::thread;
use std::time::{Duration, Instant};

use super::{MS, now};

/// An unexpected pause of this length means that the machine is busy with something else.
pub const BUSY: Duration = Duration::from_millis(3);

/// How long to wait for a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Repeats a close measurement until it is right. It fails after three wrong ones; those that something else on the
/// machine may have disturbed do not count, for some time.
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

/// Says that work is done, also if it fails: what goes on meanwhile must not run forever.
pub struct Done<'a>(pub &'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// The longest pause of a thread that wants to run every millisecond, while `work` is done.
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

/// How much longer than it wanted a thread had to sleep.
fn pause() -> Duration {
    let before = now();
    thread::sleep(MS);
    before.elapsed().saturating_sub(MS)
}

/// When a pause of a thread that wants to run every millisecond ended, and how long it was.
static PAUSES: Mutex<VecDeque<(Instant, Duration)>> = Mutex::new(VecDeque::new());
/// How many pauses are remembered.
const REMEMBERED: usize = 10_000;

/// From now on the pauses of this process are recorded.
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

/// The longest [recorded](note_pauses) pause between two times.
pub fn longest_pause(from: Instant, to: Instant) -> Duration {
    pauses(from, to).into_iter().max().unwrap_or_default()
}

/// All [recorded](note_pauses) pauses between two times together.
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
