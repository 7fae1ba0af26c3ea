//! One suite for memory and Redis: worked examples of each algorithm.

use limit::{Algorithm, Limit, Verdict};

use super::replay::{Memory, Redis, Replays, Step};
use super::{at, nodelay, pace, waiting};

/// The verdicts on joins at these milliseconds: `+` passes, `-` is rejected, `~30` waits until then.
fn told(
    decides: &impl Replays,
    algorithm: Algorithm,
    rate: &str,
    limit: Limit,
    moments: &[u64],
) -> String {
    let pace = pace(rate, algorithm, 0);
    let join = |millis: &u64| Step {
        now: at(*millis),
        pace: &pace,
        limit,
        change: None,
    };
    let joins: Vec<_> = moments.iter().map(join).collect();
    let word = |verdict| match verdict {
        Verdict::Pass { .. } => "+".to_owned(),
        Verdict::Delay { until, .. } => format!("~{}", until.since(at(0)).as_millis()),
        Verdict::Reject(_) => "-".to_owned(),
    };
    let words: Vec<_> = decides
        .replay(algorithm, &joins)
        .into_iter()
        .map(word)
        .collect();
    words.join(" ")
}

fn leaky_bucket(decides: &impl Replays) {
    let told =
        |limit, moments: &[u64]| told(decides, Algorithm::LeakyBucket, "10r/s", limit, moments);
    assert_eq!(
        told(waiting(3), &[0, 0, 0, 0, 0, 150]),
        "+ ~100 ~200 ~300 - ~400"
    );
    assert_eq!(
        told(nodelay(2), &[0, 0, 0, 0, 99, 100, 100]),
        "+ + + - - + -"
    );
    let after_one = Limit {
        delay: limit::Delay::Above(1),
        max_wait: Some(std::time::Duration::from_millis(150)),
        ..nodelay(5)
    };
    assert_eq!(told(after_one, &[0, 0, 0, 0, 50]), "+ + ~100 - ~200");
}

fn token_bucket(decides: &impl Replays) {
    let told = |moments: &[u64]| {
        told(
            decides,
            Algorithm::TokenBucket,
            "10r/s",
            nodelay(2),
            moments,
        )
    };
    assert_eq!(told(&[0, 0, 0, 0, 50, 100, 199, 200]), "+ + + - - + - +");
}

fn fixed_window(decides: &impl Replays) {
    let told = |moments: &[u64]| told(decides, Algorithm::FixedWindow, "2r/s", nodelay(1), moments);
    assert_eq!(
        told(&[900, 950, 999, 1000, 1000, 1999, 2000]),
        "+ + - + + - +"
    );
}

fn sliding_window_log(decides: &impl Replays) {
    let told = |moments: &[u64]| {
        told(
            decides,
            Algorithm::SlidingWindowLog,
            "2r/s",
            nodelay(1),
            moments,
        )
    };
    assert_eq!(
        told(&[900, 950, 999, 1899, 1900, 1901, 1950]),
        "+ + - - + - +"
    );
}

fn sliding_window_counter(decides: &impl Replays) {
    let told = |moments: &[u64]| {
        told(
            decides,
            Algorithm::SlidingWindowCounter,
            "4r/s",
            nodelay(3),
            moments,
        )
    };
    assert_eq!(
        told(&[100, 200, 300, 400, 500, 1000, 1001, 1250, 1251]),
        "+ + + + - - + - +"
    );
}

macro_rules! suite {
    ($($decides:ident as $module:ident),*; $examples:tt) => {
        $(mod $module {
            suite!(@each $decides $examples);
        })*
    };
    (@each $decides:ident [$($example:ident),*]) => {
        $(#[test]
        fn $example() {
            super::$example(&super::$decides::default());
        })*
    };
}

suite!(Memory as memory, Redis as redis;
    [leaky_bucket, token_bucket, fixed_window, sliding_window_log, sliding_window_counter]);
