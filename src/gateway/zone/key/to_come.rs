use actix::{Context, Handler};
use limit::{Moment, ToCome};

use super::KeyActor;
use super::waiter::Waiter;
use crate::zone::messages::ListTurnsToCome;
use crate::zone::saved_key::TurnToCome;

impl Handler<ListTurnsToCome> for KeyActor {
    type Result = ();

    fn handle(&mut self, ListTurnsToCome { to }: ListTurnsToCome, _: &mut Context<Self>) {
        self.message_handled();
        self.at_now(|actor, _| {
            let turns = actor.turns_to_come();
            if !turns.is_empty() {
                // The caller may have gone.
                let _gone = to.send(turns);
            }
        });
    }
}

impl KeyActor {
    /// Those that wait and go on to where that matters. While the key is paused, they are due when
    /// the pause ends.
    fn turns_to_come(&self) -> Vec<TurnToCome> {
        let turn = |due: Moment, waiter: &Waiter| {
            let to_come = ToCome {
                due: self.pause.real(due, self.shard.pacer.now()),
                cost: waiter.limit.cost,
            };
            Some(TurnToCome {
                ticket: waiter.ticket,
                onward: waiter.onward?,
                to_come,
            })
        };
        let schedule = self.queue.schedule().into_iter();
        let paused = self.pause.paused();
        let turns = schedule.chain(paused);
        turns
            .filter(|(_, waiter)| !waiter.reply.is_closed())
            .filter_map(|(due, waiter)| turn(due, waiter))
            .collect()
    }
}
