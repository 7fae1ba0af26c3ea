//! Where a supervisor is reached, from any thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix::{Addr, Context, Handler, Message};
use tokio::sync::oneshot;

use super::super::answer::Answer;
use super::actor::SupervisorActor;
use super::here::{self, Handle, SupervisorId};
use super::{JoinRequest, ZoneSupervisor};

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
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Posted<M> {
    message: M,
    unhandled: Unhandled,
}

#[derive(Debug)]
struct Unhandled(Arc<AtomicUsize>);

impl Drop for Unhandled {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

impl<M: Message<Result = ()>> Handler<Posted<M>> for SupervisorActor
where
    ZoneSupervisor: Handle<M>,
{
    type Result = ();

    fn handle(&mut self, Posted { message, unhandled }: Posted<M>, _: &mut Context<Self>) {
        drop(unhandled);
        self.pass(message);
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
    pub(in crate::zone) fn ask(
        &self,
        request: &JoinRequest<'_>,
    ) -> Result<Answer, oneshot::Receiver<Answer>> {
        let here = self
            .is_idle()
            .then(|| here::ask(self.id, &self.actor, request));
        here.flatten().unwrap_or_else(|| {
            let (join, answer) = request.message();
            self.actor.do_send(join);
            Err(answer)
        })
    }

    /// Has a message handled: at once if the supervisor is on this thread.
    pub(in crate::zone) fn send<M>(&self, message: M)
    where
        M: Message<Result = ()> + Send + 'static,
        ZoneSupervisor: Handle<M>,
    {
        let left = if self.is_idle() {
            here::handle(self.id, &self.actor, message)
        } else {
            Some(message)
        };
        if let Some(message) = left {
            self.post(message);
        }
    }

    /// Sends a message.
    pub(in crate::zone) fn post<M>(&self, message: M)
    where
        M: Message<Result = ()> + Send + 'static,
        ZoneSupervisor: Handle<M>,
    {
        self.unhandled.fetch_add(1, Ordering::Relaxed);
        let unhandled = Unhandled(Arc::clone(&self.unhandled));
        self.actor.do_send(Posted { message, unhandled });
    }

    fn is_idle(&self) -> bool {
        self.unhandled.load(Ordering::Acquire) == 0
    }
}
