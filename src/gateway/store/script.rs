//! Scripts, and the commands that call them.

use std::cell::Cell;
use std::sync::LazyLock;

use limit::Algorithm;
use redis::{Cmd, Script as Hashed};

/// Script, by its index in [`SOURCES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// Decides by a leaky bucket or a token bucket.
    Bucket,
    FixedWindow,
    SlidingWindowLog,
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
    pub(super) fn of(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::LeakyBucket | Algorithm::TokenBucket => Self::Bucket,
            Algorithm::FixedWindow => Self::FixedWindow,
            Algorithm::SlidingWindowLog => Self::SlidingWindowLog,
            Algorithm::SlidingWindowCounter => Self::SlidingWindowCounter,
        }
    }
}

/// Call of a script about one thing: its arguments, and how its reply is read.
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
        Source::new(include_str!("scripts/places.lua")),
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

/// Version like [`form`], for the grid of an origin.
pub const GRID_FORM: u8 = 2;

/// Version like [`form`], for a pool of permits.
pub const PERMITS_FORM: u8 = 1;

/// Version like [`form`], for the permits of a key.
pub const IN_FLIGHT_FORM: u8 = 1;

/// Version like [`form`], for the learned state of an origin.
pub const BACKOFF_FORM: u8 = 1;

/// Scripts that were sent over a connection with their source code.
///
/// A server executes what comes over a connection in order, so it then knows their hashes.
#[derive(Debug, Default)]
pub(super) struct SentScripts([Cell<bool>; 9]);

/// Returns the command that calls a script for these keys.
///
/// It uses the script's hash if the source code was `sent` before. `None`: the server has forgotten
/// it since.
pub(super) fn command<K: AsRef<[u8]>>(
    script: Script,
    keys: impl ExactSizeIterator<Item = K>,
    packed: &[u8],
    prefix: &[u8],
    sent: Option<&SentScripts>,
) -> Cmd {
    let index = script as usize;
    let is_known = sent.is_some_and(|SentScripts(sent)| sent[index].replace(true));
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

/// Returns a write with no other effect, to test whether Redis accepts writes.
///
/// In a cluster it goes to the slot of the key `beside`.
pub(super) fn probe(prefix: &[u8], beside: Option<&[u8]>) -> Cmd {
    let name = match beside.map(hashed_part) {
        // A key with a closing brace cannot be written as a tag.
        Some(part) if !part.contains(&b'}') => [prefix, b"probe:{", part, b"}"].concat(),
        _ => [prefix, b"probe"].concat(),
    };
    let mut command = redis::cmd("SET");
    command.arg(name).arg("1");
    command.arg("PX").arg(1000);
    command
}

/// Result of the [script of a probe](probe_script).
pub(super) const ECHO: &[u8] = b"drip";

/// Returns a call of a script that returns its argument and writes nothing.
pub(super) fn probe_script(prefix: &[u8]) -> Cmd {
    let mut command = redis::cmd("EVAL");
    command.arg("return ARGV[1]").arg(1);
    command.arg([prefix, b"probe"].concat()).arg(ECHO);
    command
}

/// Returns the part of a key from which its slot is computed: its tag in braces, or all of it.
///
/// Source: Redis cluster specification, "Hash tags".
fn hashed_part(key: &[u8]) -> &[u8] {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let behind = &key[open + 1..];
        let close = behind.iter().position(|byte| *byte == b'}')?;
        Some(&behind[..close])
    });
    tag.filter(|tag| !tag.is_empty()).unwrap_or(key)
}

/// Returns the command that deletes a key.
pub(super) fn forget(key: &[u8], prefix: &[u8]) -> Cmd {
    let mut command = redis::cmd("UNLINK");
    command.arg([prefix, key].concat());
    command
}

#[cfg(test)]
mod tests {
    use redis::Arg;

    use super::*;

    #[test]
    fn a_probe_is_in_the_slot_of_the_key_beside_it() {
        let probed = |beside: Option<&str>| {
            let command = probe(b"drip:", beside.map(str::as_bytes));
            match command.args_iter().nth(1) {
                Some(Arg::Simple(name)) => String::from_utf8_lossy(name).into_owned(),
                _ => panic!("no key"),
            }
        };
        for (beside, name) in [
            (None, "drip:probe"),
            (Some("drip:z:a"), "drip:probe:{drip:z:a}"),
            (Some("drip:z:{a}b"), "drip:probe:{a}"),
            (Some("drip:z:{}b"), "drip:probe"),
            (Some("drip:z:{a"), "drip:probe:{drip:z:{a}"),
            (Some("drip:z:a}"), "drip:probe"),
            // The next probe is beside the probe that failed.
            (Some("drip:probe:{a}"), "drip:probe:{a}"),
        ] {
            assert_eq!(probed(beside), name, "{beside:?}");
        }
    }
}
