//! Actor of a supervisor: its mailbox, its start, its restart after a panic, and its end.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use actix::{
    Actor, ActorContext, AsyncContext, Context, Handler, Message, StreamHandler, Supervised,
};

#[cfg(test)]
use super::super::restart;
use super::super::restart::Restart;
#[cfg(test)]
use super::address::SupervisorAddress;
use super::local::{self, LocalSupervisor, SupervisorId};
use super::{ZoneSupervisor, shard, sweep};
use crate::observe::metrics::ActorKind;

/// Message to a supervisor: a function that it calls.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Call<F>(pub(super) F);

/// Passes messages to a [`ZoneSupervisor`].
pub(in crate::zone) struct SupervisorActor {
    id: SupervisorId,
    local: Rc<LocalSupervisor>,
}

impl SupervisorActor {
    /// Creates the actor of a supervisor on this thread. Requests of the thread find it by `id`.
    pub(in crate::zone) fn new(id: SupervisorId, supervisor: ZoneSupervisor) -> Self {
        let local = Rc::new(LocalSupervisor {
            supervisor: RefCell::new(supervisor),
            is_open: Cell::new(false),
        });
        local::add(id, Rc::clone(&local));
        Self { id, local }
    }
}

#[cfg(test)]
impl SupervisorActor {
    /// Starts the actor of a supervisor on this thread.
    pub(in crate::zone) fn start(supervisor: ZoneSupervisor) -> SupervisorAddress {
        let id = SupervisorId::new();
        let actor = restart::start(Self::new(id, supervisor));
        SupervisorAddress::new(id, actor)
    }
}

impl Drop for SupervisorActor {
    fn drop(&mut self) {
        local::remove(self.id);
    }
}

impl Actor for SupervisorActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let mut supervisor = self.local.supervisor.borrow_mut();
        if let Some(bell) = supervisor.bell.take() {
            Self::add_stream(bell, ctx);
        }
        let next = supervisor.shard.pacer.now() + sweep::SWEEP_INTERVAL;
        supervisor.alarm.set(Some(next));
        supervisor.actor = Some(ctx.address());
        self.local.is_open.set(true);
    }
}

impl Supervised for SupervisorActor {
    fn restarting(&mut self, _: &mut Self::Context) {
        self.local.is_open.set(false);
        self.local.supervisor.borrow_mut().restart();
    }
}

impl Restart for SupervisorActor {
    const KIND: ActorKind = ActorKind::Supervisor;
}

impl<F: FnOnce(&mut ZoneSupervisor) + Send + 'static> Handler<Call<F>> for SupervisorActor {
    type Result = ();

    fn handle(&mut self, Call(call): Call<F>, _: &mut Context<Self>) {
        call(&mut self.local.supervisor.borrow_mut());
    }
}

impl StreamHandler<()> for SupervisorActor {
    fn handle(&mut self, (): (), ctx: &mut Context<Self>) {
        if self.local.supervisor.borrow_mut().sweep() {
            ctx.stop();
        }
    }
}

impl ZoneSupervisor {
    /// Forgets all keys and ends their actors, which answers their waiters.
    ///
    /// Keeps the settings, the phase and the number of joins that the store is deciding.
    fn restart(&mut self) {
        let pacer = Rc::clone(&self.shard.pacer);
        let metrics = Arc::clone(&self.shard.metrics);
        let (alarm, bell) = pacer.alarm();
        (self.alarm, self.bell) = (alarm, Some(bell));
        self.release_leases();
        self.end_all();
        let now = pacer.now();
        self.shard = shard(&self.tuning, pacer, metrics, now);
    }
}
