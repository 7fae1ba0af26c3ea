//! What operators ask of a zone's keys, answered in steps that hold up no drain.

use std::time::Duration;

use actix::{Context, Handler};

use super::super::census::KeyState;
use super::super::messages::{FROM_THE_END, Forget, ForgetKey, Key, Survey, Walk};
use super::ZoneSupervisor;

/// How many keys an operator's question looks at before others have their turn: a fraction of a millisecond.
const WALK_MOST: usize = 500;

impl Handler<Survey> for ZoneSupervisor {
    type Result = ();

    fn handle(&mut self, survey: Survey, _: &mut Context<Self>) {
        let Survey {
            mut count,
            before,
            reply,
        } = survey;
        let (now, rate) = (self.shard.pacer.now(), self.tuning.rate);
        if before == FROM_THE_END {
            count.depth += self.shard.depth();
            count.active += self.active.len();
            count.parked += self.parked.len();
        }
        let before = self.shard.walk(before, WALK_MOST, |published| {
            let state = published.state(rate, now);
            count.depth_max = count.depth_max.max(state.depth);
            count.oldest_wait = count.oldest_wait.max(state.oldest_wait);
            count.top.show(state);
        });
        // Where the asker has gone there is nobody to tell.
        let _gone = reply.send((count, before));
    }
}

impl Handler<Walk> for ZoneSupervisor {
    type Result = ();

    fn handle(&mut self, walk: Walk, _: &mut Context<Self>) {
        let Walk {
            mut top,
            before,
            reply,
        } = walk;
        let (now, rate) = (self.shard.pacer.now(), self.tuning.rate);
        let (keys, before) = self.roll.walk(before, WALK_MOST);
        for key in keys {
            if let Some(parked) = self.parked.peek(key) {
                top.show(KeyState {
                    key: Key::clone(key),
                    depth: 0,
                    excess: parked.account.excess(rate, now).requests(),
                    oldest_wait: Duration::ZERO,
                    active: false,
                });
            } else if let Some(active) = self.active.peek(key) {
                top.show(active.published.state(rate, now));
            }
        }
        // Where the asker has gone there is nobody to tell.
        let _gone = reply.send((top, before));
    }
}

impl Handler<Forget> for ZoneSupervisor {
    type Result = ();

    fn handle(&mut self, forget: Forget, _: &mut Context<Self>) {
        let Forget {
            key,
            waiters,
            reply,
        } = forget;
        if let Some(active) = self.active.peek(&key) {
            return active.tell(ForgetKey { waiters, reply });
        }
        let elsewhere = self.shard.sharing().map(|zone| zone.forget(&key, None));
        let parked = self.parked.pop(&key);
        if let Some(parked) = &parked {
            self.strike(parked.index);
        }
        // Where the asker has gone there is nobody to tell.
        let _gone = reply.send(parked.map(|_| 0).or(elsewhere.map(|()| 0)));
    }
}
