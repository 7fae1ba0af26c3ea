//! Address of a supervisor, usable from any thread.
//!
//! On the supervisor's own thread, a call is direct (see `local`). From another thread it is a
//! message.

use std::panic::resume_unwind;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix::Addr;
use tokio::sync::oneshot;

use super::ZoneSupervisor;
use super::actor::{Call, SupervisorActor};
use super::local::{self, LocalSupervisor, SupervisorId};
use crate::zone::answer::Answer;
use crate::zone::join::{Join, Key};

/// Address of a supervisor.
///
/// Calls through one address are handled in order, as in a mailbox. Calls of other threads may come
/// in between.
#[derive(Clone, Debug)]
pub(in crate::zone) struct SupervisorAddress {
    id: SupervisorId,
    actor: Addr<SupervisorActor>,
    /// Number of messages sent and not handled yet. A direct call must not overtake them.
    unhandled: Arc<AtomicUsize>,
}

impl SupervisorAddress {
    pub(in crate::zone) fn new(id: SupervisorId, actor: Addr<SupervisorActor>) -> Self {
        Self {
            id,
            actor,
            unhandled: Arc::default(),
        }
    }

    /// Returns whether the supervisor has not ended.
    pub(in crate::zone) fn connected(&self) -> bool {
        self.actor.connected()
    }

    /// Joins. Returns the answer, or a receiver for it.
    pub(in crate::zone) fn join(&self, join: &Join) -> Result<Answer, oneshot::Receiver<Answer>> {
        if let Some(local) = self.local() {
            let answer = self.call(&local, |zone| zone.join(join));
            // After a panic there is no answer, so the receiver is closed.
            return answer.unwrap_or_else(|| Err(oneshot::channel().1));
        }
        let (pending, answer) = join.clone().pending();
        let call = move |zone: &mut ZoneSupervisor| zone.join_pending(pending);
        self.actor.do_send(Call(call));
        Err(answer)
    }

    /// Calls `call` at the supervisor, with this key: directly if the supervisor is on this thread.
    pub(in crate::zone) fn send(
        &self,
        key: &Key,
        call: impl FnOnce(&mut ZoneSupervisor, &Key) + Send + 'static,
    ) {
        if let Some(local) = self.local() {
            // A call that panics is lost, like a message whose handler panics.
            let _lost = self.call(&local, |zone| call(zone, key));
        } else {
            let key = Key::clone(key);
            self.post(move |zone| call(zone, &key));
        }
    }

    /// Calls the supervisor, which is on this thread. Returns `None` after a panic.
    ///
    /// The actor then panics in turn, so that it restarts as after any other panic.
    fn call<T>(
        &self,
        local: &LocalSupervisor,
        call: impl FnOnce(&mut ZoneSupervisor) -> T,
    ) -> Option<T> {
        let panic = match local.call(call) {
            Ok(result) => return Some(result),
            Err(panic) => panic,
        };
        let panic_again = move |_: &mut ZoneSupervisor| resume_unwind(panic);
        self.actor.do_send(Call(panic_again));
        None
    }

    /// Sends the supervisor a message that calls `call`.
    pub(in crate::zone) fn post(&self, call: impl FnOnce(&mut ZoneSupervisor) + Send + 'static) {
        self.unhandled.fetch_add(1, Ordering::Relaxed);
        let unhandled = Arc::clone(&self.unhandled);
        self.actor.do_send(Call(move |zone: &mut ZoneSupervisor| {
            unhandled.fetch_sub(1, Ordering::Release);
            call(zone);
        }));
    }

    /// Does the same as [`post`](Self::post). Returns a receiver of the result.
    ///
    /// The receiver fails if the supervisor panics or has ended.
    pub(in crate::zone) fn ask<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut ZoneSupervisor) -> T + Send + 'static,
    ) -> oneshot::Receiver<T> {
        let (reply, answer) = oneshot::channel();
        self.post(move |zone| {
            // The caller may have been dropped.
            let _unsent = reply.send(call(zone));
        });
        answer
    }

    /// Returns the supervisor if it is on this thread and no earlier message is unhandled.
    fn local(&self) -> Option<Rc<LocalSupervisor>> {
        let is_idle = self.unhandled.load(Ordering::Acquire) == 0;
        is_idle.then(|| local::find(self.id)).flatten()
    }
}
