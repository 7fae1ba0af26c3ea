//! Panics on demand, for the tests of supervision.

use actix::Message;

use super::super::answer::Key;
use super::super::key::CrashKey;
use super::ZoneSupervisor;
use super::here::Handle;

/// What panics.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) enum Crash {
    /// The actor of this key, if it has one.
    Key(Key),
    /// The supervisor that handles this.
    Supervisor,
}

impl Handle<Crash> for ZoneSupervisor {
    fn handle(&mut self, crash: Crash) {
        match crash {
            Crash::Key(key) => {
                if let Some(active) = self
                    .keys
                    .find(&key)
                    .and_then(|index| self.keys[index].active())
                {
                    active.tell(CrashKey);
                }
            }
            Crash::Supervisor => panic!("a test crashes the supervisor"),
        }
    }
}
