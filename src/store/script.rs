use std::sync::LazyLock;

use redis::{Cmd, Script};

use super::pace::whole_micros;
use super::{Join, Refund, Retune};
use crate::limit::{Algorithm, Delay, Moment};

/// A script's source code, and the hash by which it is called.
struct Source {
    code: &'static str,
    hash: String,
}

macro_rules! source {
    ($file:literal) => {
        Source::new(concat!(
            include_str!("scripts/common.lua"),
            include_str!($file)
        ))
    };
}

impl Source {
    fn new(code: &'static str) -> Self {
        let hash = Script::new(code).get_hash().to_owned();
        Self { code, hash }
    }

    fn of(algorithm: Algorithm) -> &'static Self {
        let index = match algorithm {
            Algorithm::LeakyBucket | Algorithm::TokenBucket => 0,
            Algorithm::FixedWindow => 1,
            Algorithm::SlidingWindowLog => 2,
            Algorithm::SlidingWindowCounter => 3,
        };
        &SOURCES[index]
    }
}

static SOURCES: LazyLock<[Source; 4]> = LazyLock::new(|| {
    [
        source!("scripts/bucket.lua"),
        source!("scripts/fixed_window.lua"),
        source!("scripts/sliding_window_log.lua"),
        source!("scripts/sliding_window_counter.lua"),
    ]
});

/// How a script is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// By its hash. Redis forgets scripts when it restarts.
    Hash,
    /// With its source code. Redis then knows its hash.
    Code,
}

fn call(by: By, algorithm: Algorithm, prefix: &[u8], key: &[u8]) -> Cmd {
    let source = Source::of(algorithm);
    let mut command = match by {
        By::Hash => redis::cmd("EVALSHA"),
        By::Code => redis::cmd("EVAL"),
    };
    command.arg(match by {
        By::Hash => &source.hash,
        By::Code => source.code,
    });
    command.arg(1).arg([prefix, key].concat());
    command
}

fn micros(at: Option<Moment>) -> String {
    at.map_or_else(String::new, |at| (at.as_nanos() / 1000).to_string())
}

pub(super) fn join(join: &Join<'_>, prefix: &[u8], by: By) -> Cmd {
    let mut command = call(by, join.algorithm, prefix, join.key);
    command.arg("join").arg(micros(join.at));
    command
        .arg(join.pace.text())
        .arg(join.pace.since().as_nanos() / 1000);
    if join.algorithm.has_windows() {
        command.arg(u64::from(join.limit.burst) + 1);
        command.arg(join.limit.cost.get());
        return command;
    }
    let (delay, patience) = match (join.algorithm, join.limit.waits()) {
        (Algorithm::LeakyBucket, Delay::Above(delay)) => {
            let patience = join.limit.max_wait.map(whole_micros);
            (i64::from(delay), patience)
        }
        _ => (-1, None),
    };
    // A longer wait counts as unlimited: the scripts' numbers cannot hold it.
    let patience = patience
        .and_then(|span| i64::try_from(span.as_micros()).ok())
        .filter(|micros| *micros < 1 << 52);
    let patience = patience.unwrap_or(-1);
    command.arg(join.limit.ceiling()).arg(delay).arg(patience);
    command.arg(join.limit.cost.get());
    command
}

pub(super) fn refund(refund: &Refund<'_>, prefix: &[u8], by: By) -> Cmd {
    let mut command = call(by, refund.algorithm, prefix, refund.key);
    command.arg("refund").arg(micros(refund.at));
    command
        .arg(refund.pace.text())
        .arg(refund.pace.since().as_nanos() / 1000);
    match refund.algorithm {
        Algorithm::LeakyBucket => command.arg(refund.charge.place),
        Algorithm::TokenBucket => command.arg(""),
        _ => command.arg(micros(Some(refund.charge.at))),
    };
    command.arg(refund.charge.cost.get());
    command
}

/// For leaky buckets only.
pub(super) fn forget_behind(last: &Refund, prefix: &[u8], by: By) -> Cmd {
    let mut command = call(by, last.algorithm, prefix, last.key);
    command.arg("forget").arg(micros(last.at));
    command
        .arg(last.pace.text())
        .arg(last.pace.since().as_nanos() / 1000)
        .arg(last.charge.place)
        .arg(last.charge.cost.get());
    command
}

pub(super) fn retune(retune: &Retune<'_>, prefix: &[u8], by: By) -> Cmd {
    let mut command = call(by, Algorithm::LeakyBucket, prefix, retune.key);
    command.arg("retune").arg("");
    command
        .arg(retune.pace.text())
        .arg(retune.pace.since().as_nanos() / 1000);
    command
}

/// A write with no other effect, to test whether Redis accepts writes.
pub(super) fn probe(prefix: &[u8]) -> Cmd {
    let mut command = redis::cmd("SET");
    command.arg([prefix, b"probe"].concat()).arg("1");
    command.arg("PX").arg(1000);
    command
}

pub(super) fn forget(key: &[u8], prefix: &[u8]) -> Cmd {
    let mut command = redis::cmd("UNLINK");
    command.arg([prefix, key].concat());
    command
}
