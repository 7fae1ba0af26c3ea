use std::sync::LazyLock;

use redis::{Cmd, Script};

use super::Claim;
use super::calls::Call;
use crate::limit::Algorithm;

/// A script's source code, and the hash by which it is called.
struct Source {
    code: &'static str,
    hash: String,
}

macro_rules! source {
    ($($file:literal),*) => {
        Source::new(concat!(
            include_str!("scripts/common.lua"),
            $(include_str!($file),)*
            include_str!("scripts/each_key.lua")
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
        source!("scripts/bucket.lua", "scripts/strings.lua"),
        source!("scripts/fixed_window.lua", "scripts/strings.lua"),
        source!("scripts/sliding_window_log.lua"),
        source!("scripts/sliding_window_counter.lua", "scripts/strings.lua"),
    ]
});

/// The version of a key's state in Redis: the first byte of the state, and a part of its name.
///
/// Gateways of another version keep other states under other names.
pub const FORM: u8 = 2;

/// As [`FORM`], for the grid of an origin.
pub const GRID_FORM: u8 = 1;

/// How a script is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// By its hash. Redis forgets scripts when it restarts.
    Hash,
    /// With its source code. Redis then knows its hash.
    Code,
}

/// The grid's script.
static GRID: LazyLock<Source> = LazyLock::new(|| Source::new(include_str!("scripts/grid.lua")));

/// The command that makes a claim.
pub(super) fn claim(claim: &Claim<'_>, prefix: &[u8], by: By) -> Cmd {
    let mut command = called(&GRID, by);
    command.arg(1).arg([prefix, claim.grid].concat());
    command.arg(claim.packed());
    command
}

fn called(source: &Source, by: By) -> Cmd {
    match by {
        By::Hash => redis::cmd("EVALSHA").arg(&source.hash).take(),
        By::Code => redis::cmd("EVAL").arg(source.code).take(),
    }
}

/// The command that makes a call.
pub(super) fn command(call: &Call<'_>, prefix: &[u8], by: By) -> Cmd {
    let mut command = called(Source::of(call.algorithm()), by);
    command.arg(call.keys().len());
    let mut name = prefix.to_vec();
    for key in call.keys() {
        name.truncate(prefix.len());
        name.extend_from_slice(key);
        command.arg(name.as_slice());
    }
    command.arg(call.packed());
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
