//! Panics on demand, for the tests of supervision.

use actix::{Context, Handler, Message};

use super::KeyActor;

#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(in crate::zone) struct CrashKey;

impl Handler<CrashKey> for KeyActor {
    type Result = ();

    fn handle(&mut self, _: CrashKey, _: &mut Context<Self>) {
        self.message_handled();
        panic!("a test crashes the key");
    }
}
