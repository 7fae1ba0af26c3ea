//! Measures parts in CPU time of this thread: wall time would include other processes.

use std::hint::black_box;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Number of measurements of each part.
const SAMPLES: usize = 40;
/// Minimum duration of a measurement, reached by repeating the part.
const LONG_ENOUGH: Duration = Duration::from_millis(10);
/// Number of inputs prepared at a time, if each can be used only once.
const INPUTS: usize = 64;

/// Measures the parts whose names contain the argument of the command.
pub struct Bench(String);

impl Bench {
    /// Reads the arguments, as in `cargo bench --bench queue -- retune`.
    pub fn from_arguments() -> Self {
        let mut arguments = std::env::args().skip(1);
        Self(
            arguments
                .find(|it| !it.starts_with('-'))
                .unwrap_or_default(),
        )
    }

    /// Measures `once`.
    pub fn time<T>(&self, name: &str, mut once: impl FnMut() -> T) {
        self.custom(name, |times| {
            let began = now();
            for _ in 0..times {
                black_box(once());
            }
            now().saturating_sub(began)
        });
    }

    /// Measures `once`, with a new input each time.
    pub fn with_inputs<I, T>(
        &self,
        name: &str,
        mut input: impl FnMut() -> I,
        mut once: impl FnMut(&mut I) -> T,
    ) {
        if !name.contains(&self.0) {
            return;
        }
        let samples = (0..SAMPLES).map(|_| {
            let mut inputs: Vec<I> = (0..INPUTS).map(|_| input()).collect();
            let began = now();
            for input in &mut inputs {
                black_box(once(input));
            }
            nanos(now().saturating_sub(began), INPUTS as u64)
        });
        print(name, samples.collect());
    }

    /// Measures `run`, which repeats something a number of times and returns the total duration.
    pub fn custom(&self, name: &str, mut run: impl FnMut(u64) -> Duration) {
        if !name.contains(&self.0) {
            return;
        }
        let mut times = 1;
        while run(times) < LONG_ENOUGH {
            times *= 2;
        }
        let samples = (0..SAMPLES).map(|_| nanos(run(times), times));
        print(name, samples.collect());
    }
}

/// Returns the processor time of this thread so far.
pub fn now() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.try_into().unwrap_or_default(),
        time.tv_nsec.try_into().unwrap_or_default(),
    )
}

/// Returns the nanoseconds of one of `times` repetitions.
#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
fn nanos(all: Duration, times: u64) -> f64 {
    all.as_secs_f64() * 1e9 / times as f64
}

/// Prints the median of the samples, and the range without the extremes.
fn print(name: &str, mut samples: Vec<f64>) {
    samples.sort_by(f64::total_cmp);
    let at = |percent: usize| samples[(samples.len() - 1) * percent / 100];
    let (low, median, high) = (at(5), at(50), at(95));
    println!("{name:70} {median:9.1} ns, nine of ten from {low:.1} to {high:.1}");
}
