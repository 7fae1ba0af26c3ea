//! Panics on demand, for the tests of supervision.

use super::ZoneSupervisor;
use crate::zone::join::Key;

/// Actor that should panic.
pub(crate) enum Crash {
    /// The actor of this key, if it has one.
    Key(Key),
    /// The supervisor that handles this.
    Supervisor,
}

impl ZoneSupervisor {
    /// Panics, or makes the actor of a key panic.
    pub(in crate::zone) fn crash(&self, crash: Crash) {
        match crash {
            Crash::Key(key) => self.if_active(&key, |_, _, _| panic!("a test crashes the key")),
            Crash::Supervisor => panic!("a test crashes the supervisor"),
        }
    }
}
