//! Lua scripts that run in Redis, and the commands that call them.
//!
//! Their sources, with the form of arguments and replies, are in the folder `scripts`. Redis knows
//! a script by its hash once it has run its source code.

use std::cell::Cell;
use std::sync::LazyLock;

use limit::Algorithm;
use redis::{Cmd, Script as Hashed};

/// Script, by its index in [`SOURCES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// Decides by a leaky bucket or a token bucket.
    Bucket,
    /// Decides by a fixed window.
    FixedWindow,
    /// Decides by a log of requests.
    SlidingWindowLog,
    /// Decides by two windows.
    SlidingWindowCounter,
    /// Assigns the slots of an origin.
    Grid,
    /// Keeps a waiting room.
    Room,
    /// Keeps a pool of permits of an origin.
    Permits,
    /// Keeps the learned state of an origin.
    Backoff,
    /// Counts the permits of keys.
    InFlight,
}

impl Script {
    /// Returns the script that decides by an algorithm.
    pub(super) fn for_algorithm(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::LeakyBucket | Algorithm::TokenBucket => Self::Bucket,
            Algorithm::FixedWindow => Self::FixedWindow,
            Algorithm::SlidingWindowLog => Self::SlidingWindowLog,
            Algorithm::SlidingWindowCounter => Self::SlidingWindowCounter,
        }
    }
}

/// Call of a script that is not about a zone's bucket: its arguments, and how its reply is read.
pub trait ScriptCall {
    const SCRIPT: Script;
    type Reply;

    /// Returns the names of its keys in Redis after the store's prefix.
    fn keys(&self) -> Vec<Vec<u8>>;

    /// Returns the packed argument of the script.
    fn packed(&self) -> Vec<u8>;

    /// Reads a reply, which may be a refusal; `None` if it is not one of the script.
    fn read(&self, packed: &[u8]) -> Option<Result<Self::Reply, super::Error>>;
}

/// Source code of a script, and the hash by which it is called.
struct Source {
    code: &'static str,
    hash: String,
}

/// Source of a script that decides on joins, from its own files and the common ones.
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
        let hash = Hashed::new(code).get_hash().to_owned();
        Self { code, hash }
    }
}

/// Sources, in the order of [`Script`].
static SOURCES: LazyLock<[Source; 9]> = LazyLock::new(|| {
    [
        source!("scripts/bucket.lua", "scripts/strings.lua"),
        source!("scripts/fixed_window.lua", "scripts/strings.lua"),
        source!("scripts/sliding_window_log.lua"),
        source!("scripts/sliding_window_counter.lua", "scripts/strings.lua"),
        Source::new(concat!(
            include_str!("scripts/grid_keys.lua"),
            include_str!("scripts/grid.lua")
        )),
        Source::new(include_str!("scripts/room.lua")),
        Source::new(include_str!("scripts/permits.lua")),
        Source::new(include_str!("scripts/backoff.lua")),
        Source::new(include_str!("scripts/in_flight.lua")),
    ]
});

/// Returns the version of a key's state in Redis.
///
/// It is the first byte of the state and a part of its name. Gateways of another version keep other
/// states under other names.
pub fn form(algorithm: Algorithm) -> u8 {
    match algorithm {
        Algorithm::SlidingWindowLog => 3,
        _ => 2,
    }
}

/// Version of the state of an origin's grid: as [`form`], but not of a zone's key.
pub const GRID_FORM: u8 = 2;

/// Version of the state of a pool of permits, as [`GRID_FORM`].
pub const PERMITS_FORM: u8 = 1;

/// Version of the state of a key's permits, as [`GRID_FORM`].
pub const IN_FLIGHT_FORM: u8 = 1;

/// Version of the learned state of an origin, as [`GRID_FORM`].
pub const BACKOFF_FORM: u8 = 2;

/// Scripts that were sent over a connection with their source code.
///
/// A server executes the commands of a connection in order, so it knows the hashes of these
/// scripts.
#[derive(Debug, Default)]
pub(super) struct SentScripts([Cell<bool>; 9]);

/// Returns the command that calls a script for these keys.
///
/// It has the script's hash if the source code was `sent` before over the connection, else the
/// source code. `None`: the source code, because the server has forgotten the script.
pub(super) fn command<K: AsRef<[u8]>>(
    script: Script,
    keys: impl ExactSizeIterator<Item = K>,
    packed: &[u8],
    prefix: &[u8],
    sent: Option<&SentScripts>,
) -> Cmd {
    let index = script as usize;
    let is_known = sent.is_some_and(|SentScripts(was_sent)| was_sent[index].replace(true));
    let mut command = if is_known {
        redis::cmd("EVALSHA").arg(&SOURCES[index].hash).take()
    } else {
        redis::cmd("EVAL").arg(SOURCES[index].code).take()
    };
    command.arg(keys.len());
    let mut name = prefix.to_vec();
    for key in keys {
        name.truncate(prefix.len());
        name.extend_from_slice(key.as_ref());
        command.arg(name.as_slice());
    }
    command.arg(packed);
    command
}

/// Returns the command that deletes a key.
pub(super) fn forget(key: &[u8], prefix: &[u8]) -> Cmd {
    redis::cmd("UNLINK").arg([prefix, key].concat()).take()
}
