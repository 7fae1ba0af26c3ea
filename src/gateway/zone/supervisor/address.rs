//! Where a supervisor is reached, from any thread.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix::Addr;
use tokio::sync::oneshot;

use super::ZoneSupervisor;
use super::actor::{Call, SupervisorActor};
use super::here::{self, Here, SupervisorId};
use crate::zone::answer::Answer;
use crate::zone::join::{Join, Key};

/// The address of a supervisor.
///
/// What is sent with one address is handled in its order, as in a mailbox, but for requests of
/// other threads.
#[derive(Clone, Debug)]
pub(in crate::zone) struct SupervisorAddress {
    id: SupervisorId,
    actor: Addr<SupervisorActor>,
    /// Number of messages that are sent and not handled: none may be overtaken in place.
    unhandled: Arc<AtomicUsize>,
}

/// A message that counts as unhandled until this is dropped.
struct Unhandled(Arc<AtomicUsize>);

impl Drop for Unhandled {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

impl SupervisorAddress {
    pub(in crate::zone) fn new(id: SupervisorId, actor: Addr<SupervisorActor>) -> Self {
        Self {
            id,
            actor,
            unhandled: Arc::default(),
        }
    }

    /// Whether the supervisor has not ended.
    pub(in crate::zone) fn connected(&self) -> bool {
        self.actor.connected()
    }

    /// Asks for a turn. Returns the answer, or where it will come.
    pub(in crate::zone) fn join(&self, join: &Join) -> Result<Answer, oneshot::Receiver<Answer>> {
        if let Some(here) = self.here() {
            let answer = here.call(&self.actor, |it| it.join(join));
            // After a panic nobody answers.
            return answer.unwrap_or_else(|| Err(oneshot::channel().1));
        }
        let (pending, answer) = join.clone().pending();
        let call = move |it: &mut ZoneSupervisor| it.join_pending(pending);
        self.actor.do_send(Call(call));
        Err(answer)
    }

    /// Has the supervisor do something for a key: at once if it is on this thread.
    pub(in crate::zone) fn send(
        &self,
        key: &Key,
        call: impl FnOnce(&mut ZoneSupervisor, &Key) + Send + 'static,
    ) {
        if let Some(here) = self.here() {
            // As a message whose handler panics, it is lost then.
            let _lost = here.call(&self.actor, |it| call(it, key));
        } else {
            let key = Key::clone(key);
            self.post(move |it| call(it, &key));
        }
    }

    /// Has the supervisor do something.
    pub(in crate::zone) fn post(&self, call: impl FnOnce(&mut ZoneSupervisor) + Send + 'static) {
        self.unhandled.fetch_add(1, Ordering::Relaxed);
        let unhandled = Unhandled(Arc::clone(&self.unhandled));
        self.actor.do_send(Call(move |it: &mut ZoneSupervisor| {
            drop(unhandled);
            call(it);
        }));
    }

    /// As [`post`](Self::post), with an answer. None comes if the supervisor panics or has ended.
    pub(in crate::zone) fn ask<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut ZoneSupervisor) -> T + Send + 'static,
    ) -> oneshot::Receiver<T> {
        let (reply, answer) = oneshot::channel();
        self.post(move |it| {
            // The caller may have gone.
            let _gone = reply.send(call(it));
        });
        answer
    }

    /// Returns the supervisor, if it is on this thread and nothing is sent that comes first.
    fn here(&self) -> Option<Rc<Here>> {
        let is_idle = self.unhandled.load(Ordering::Acquire) == 0;
        is_idle.then(|| here::find(self.id)).flatten()
    }
}
