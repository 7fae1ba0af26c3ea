//! Probes of the *store*: whether it accepts writes, and whether it is a Redis at all.
//!
//! `link` probes an unavailable store at intervals. A reply that is not from a Redis is *foreign*.

use std::cell::Cell;
use std::time::Duration;

use redis::{Cmd, Value};
use tokio::time::timeout;

use super::{Error, Store};

/// Timeout for connecting when no request waits for the connection.
///
/// Longer than the timeout for an answer, but short enough to notice soon that Redis is back.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Time between two probes while the store is unavailable.
const PROBE_INTERVAL: Duration = Duration::from_millis(250);

/// Upper bound of the doublings of that time while the answers are foreign: to 8 seconds.
const MAX_DOUBLINGS: u32 = 5;

/// Argument of the script of a probe, which the script returns.
const ECHO: &[u8] = b"drip";

/// Doubt whether the server is a Redis.
#[derive(Default)]
pub(super) struct Doubt {
    /// Whether a reply was invalid or a connection ended, and no probe has run a script since.
    is_suspect: Cell<bool>,
    /// Number of consecutive replies that were not from a Redis.
    foreign_replies: Cell<u32>,
}

impl Doubt {
    /// Makes the next probe run a script.
    pub(super) fn suspect(&self) {
        self.is_suspect.set(true);
    }

    /// Records whether a reply was valid.
    pub(super) fn note_validity(&self, is_valid: bool) {
        if is_valid {
            self.foreign_replies.set(0);
        } else {
            self.suspect();
            let count = self.foreign_replies.get();
            self.foreign_replies.set(count.saturating_add(1));
        }
    }
}

impl Store {
    /// Connects if there is no connection, and tests whether a write succeeds in time.
    ///
    /// In a cluster it writes to the node that failed last, if a key of that node is known.
    /// Connecting may take longer than the store's timeout.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no connection or the write fails. Returns none if only this
    /// write is refused.
    pub async fn probe(&self) -> Result<(), Error> {
        match timeout(CONNECT_TIMEOUT, self.connection()).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Err(self.connection_error(&error)),
            Err(_) => return Err(Error::Late),
        }
        let failed_key = self.unanswered.take();
        let write = write(&self.prefix, failed_key.as_deref());
        let mut probed = self.run_one(|_| write.clone()).await.map(drop);
        if probed.is_ok() && self.doubt.is_suspect.get() {
            probed = self.probe_script().await;
        }
        // A refusal is not an outage, and other commands may be allowed.
        if probed.as_ref().is_err_and(|error| !error.is_outage()) {
            probed = Ok(());
        }
        if let (Err(_), Some(key)) = (&probed, failed_key) {
            self.unanswered.note(key);
        }
        probed
    }

    /// Tests whether scripts run: a server that accepts any command need not be a Redis.
    async fn probe_script(&self) -> Result<(), Error> {
        let echo = echo_script(&self.prefix);
        let reply = self.run_one(|_| echo.clone()).await?;
        if reply == Value::BulkString(ECHO.to_vec()) {
            // Only replies of the real scripts shorten the time between probes again.
            self.doubt.is_suspect.set(false);
            return Ok(());
        }
        self.doubt.note_validity(false);
        Err(Error::InvalidReply)
    }

    /// Returns the time until the next [probe](Self::probe) of an unavailable store.
    ///
    /// Longer after each foreign answer in a row.
    pub fn next_try(&self) -> Duration {
        let doublings = self.doubt.foreign_replies.get().saturating_sub(1);
        PROBE_INTERVAL * (1 << doublings.min(MAX_DOUBLINGS))
    }
}

/// Returns a write with no other effect, to test whether Redis accepts writes.
///
/// In a cluster it goes to the slot of the key `beside`.
fn write(prefix: &[u8], beside: Option<&[u8]>) -> Cmd {
    let name = match beside.map(hashed_part) {
        // A key with a closing brace cannot be written as a tag.
        Some(part) if !part.contains(&b'}') => [prefix, b"probe:{", part, b"}"].concat(),
        _ => [prefix, b"probe"].concat(),
    };
    let mut command = redis::cmd("SET");
    command.arg(name).arg("1").arg("PX").arg(1000).take()
}

/// Returns a call of a script that returns [`ECHO`] and writes nothing.
fn echo_script(prefix: &[u8]) -> Cmd {
    let key = [prefix, b"probe"].concat();
    let mut command = redis::cmd("EVAL");
    command
        .arg("return ARGV[1]")
        .arg(1)
        .arg(key)
        .arg(ECHO)
        .take()
}

/// Returns the part of a key from which its slot is computed: its tag in braces, or all of it.
///
/// Source: Redis cluster specification, "Hash tags".
fn hashed_part(key: &[u8]) -> &[u8] {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let after_open = &key[open + 1..];
        let close = after_open.iter().position(|byte| *byte == b'}')?;
        Some(&after_open[..close])
    });
    tag.filter(|tag| !tag.is_empty()).unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use redis::Arg;

    use super::*;

    #[test]
    fn a_probe_is_in_the_slot_of_the_key_beside_it() {
        let probed = |beside: Option<&str>| {
            let command = write(b"drip:", beside.map(str::as_bytes));
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
