//! Key of the cluster's node that did not answer last, for the next probe.
//!
//! Nodes of a cluster fail one by one, and each has a part of the keys. So a probe writes to the
//! node of the key whose command was not answered.

use std::cell::RefCell;

use redis::{Arg, Cmd};

/// Name in Redis of the last key whose command was not answered, until it is taken.
#[derive(Default)]
pub(super) struct UnansweredKey(RefCell<Option<Vec<u8>>>);

/// Command in flight. If this is dropped before an answer, the command's key is noted.
pub(super) struct CommandInFlight<'a> {
    command: &'a Cmd,
    /// Where the key is noted; `None` once the command is answered.
    unanswered: Option<&'a UnansweredKey>,
}

impl UnansweredKey {
    /// Returns the guard of a command in flight.
    pub(super) fn watch<'a>(&'a self, command: &'a Cmd) -> CommandInFlight<'a> {
        CommandInFlight {
            command,
            unanswered: Some(self),
        }
    }

    /// Notes a key whose node did not answer.
    pub(super) fn note(&self, key: Vec<u8>) {
        *self.0.borrow_mut() = Some(key);
    }

    /// Takes the noted key.
    pub(super) fn take(&self) -> Option<Vec<u8>> {
        self.0.borrow_mut().take()
    }
}

impl CommandInFlight<'_> {
    /// Notes that the command was answered.
    pub(super) fn mark_answered(&mut self) {
        self.unanswered = None;
    }
}

impl Drop for CommandInFlight<'_> {
    fn drop(&mut self) {
        if let (Some(unanswered), Some(key)) = (self.unanswered, first_key(self.command)) {
            unanswered.note(key.to_owned());
        }
    }
}

/// Returns the first key of a command.
fn first_key(command: &Cmd) -> Option<&[u8]> {
    let mut words = command.args_iter();
    let words_before_key = match words.next() {
        // The command has the script and the number of keys before the first key.
        Some(Arg::Simple(b"EVALSHA" | b"EVAL")) => 2,
        _ => 0,
    };
    match words.nth(words_before_key) {
        Some(Arg::Simple(key)) => Some(key),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_an_abandoned_command_is_noted_once() {
        let unanswered = UnansweredKey::default();
        let words = |name, words: &[&str]| redis::cmd(name).arg(words).take();
        let script = words("EVALSHA", &["hash", "1", "drip:z:a", "packed"]);
        let probe = words("SET", &["drip:probe", "1"]);
        let mut answered = unanswered.watch(&script);
        answered.mark_answered();
        drop(answered);
        assert_eq!(unanswered.take(), None);
        for (asked, key) in [(&script, "drip:z:a"), (&probe, "drip:probe")] {
            drop(unanswered.watch(asked));
            assert_eq!(unanswered.take(), Some(key.into()));
            assert_eq!(unanswered.take(), None);
        }
    }
}
