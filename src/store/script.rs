use std::cell::Cell;
use std::sync::LazyLock;

use redis::{Cmd, Script};

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
}

/// Which of [`SOURCES`] decides by an algorithm.
fn index_of(algorithm: Algorithm) -> usize {
    match algorithm {
        Algorithm::LeakyBucket | Algorithm::TokenBucket => 0,
        Algorithm::FixedWindow => 1,
        Algorithm::SlidingWindowLog => 2,
        Algorithm::SlidingWindowCounter => 3,
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

/// The scripts that were sent over a connection with their source code.
///
/// A server does what comes over a connection in order, so it then knows their hashes.
#[derive(Debug, Default)]
pub(super) struct SentScripts([Cell<bool>; 4]);

/// The command that makes a call.
///
/// The script goes by its hash if its source code was sent before. `None`: the server has forgotten
/// it since.
pub(super) fn command(call: &Call<'_>, prefix: &[u8], sent: Option<&SentScripts>) -> Cmd {
    let index = index_of(call.algorithm());
    let source = &SOURCES[index];
    let is_known = sent.is_some_and(|SentScripts(sent)| sent[index].replace(true));
    let mut command = redis::cmd(if is_known { "EVALSHA" } else { "EVAL" });
    command.arg(if is_known { &source.hash } else { source.code });
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
