//! Handling of a visitor's request: from its ticket or session to its answer.
//!
//! A visitor *polls* with a ticket while it waits. Once its number is called, its next poll makes
//! it *come* inside, with a session. `bind` is the value that texts are signed for. A shared room
//! has a *mirror*: a copy of the store's state, as of its last reply.

use std::sync::MutexGuard;
use std::time::Duration;

use limit::{Call, Drawn, MirrorPoll, MirrorTouch, Moment, Polled, WaitingVisitor};

use super::presented::{Answered, Presented, SessionText, TicketText};
use super::shared::SharedRoom;
use super::ticket::{Signed, Ticket};
use super::{OriginRoom, RoomStore, State};
use crate::observe::metrics::RoomRequest;
use crate::store::{RoomDone, RoomOp};

impl OriginRoom {
    /// Answers a request to a room in memory; `None`: the room is in the store.
    pub fn answer_at_once(
        &self,
        presented: Presented,
        bind: &[u8],
        now: Moment,
    ) -> Option<Answered> {
        let mut state = self.lock();
        state.advance(now);
        let (keys, is_handed_over) = (state.lottery, state.is_handed_over);
        let RoomStore::Here(room) = &mut state.store else {
            return None;
        };
        if let Some(session) = presented.session
            && room.touch(session.value, keys, now)
        {
            let renewed = session.is_older.then(|| state.session(session.value, bind));
            return Some(self.answer_session(renewed));
        }
        if is_handed_over {
            return Some(Answered::NoNumber);
        }
        // An unknown session has ended, or it began right before the process was killed. Then the
        // restored room still has its number as called or waiting.
        let ticket = presented.ticket.map(|it| it.value.number);
        let Some(number) = ticket.or(presented.session.map(|it| it.value)) else {
            return Some(Answered::MustDraw);
        };
        let polled = room.poll(number, keys, now);
        Some(self.answer_polled(state, polled, number, presented.ticket, bind, now))
    }

    /// Answers a request by the tickets and sessions that it presents.
    pub async fn answer(&self, presented: Presented, bind: &[u8], now: Moment) -> Answered {
        if let Some(answered) = self.answer_at_once(presented, bind, now) {
            return answered;
        }
        let (session, ticket) = (presented.session, presented.ticket);
        if let Some(session) = session
            && self.touch_session(session.value, now).await
        {
            let renewed = session
                .is_older
                .then(|| self.lock().session(session.value, bind));
            return self.answer_session(renewed);
        }
        if let Some(ticket) = ticket {
            return self.poll(ticket, bind, now).await;
        }
        if session.is_some() {
            self.metrics.count(RoomRequest::Ended);
        }
        Answered::MustDraw
    }

    /// Answers a visitor with a session. `renewed`: new text of it, if an older secret signed it.
    fn answer_session(&self, renewed: Option<SessionText>) -> Answered {
        self.metrics.count(RoomRequest::Session);
        Answered::Inside(renewed)
    }

    /// Records a request of a visitor with a session in a shared room. Returns whether it goes on.
    async fn touch_session(&self, number: u64, now: Moment) -> bool {
        let touched = match self.lock().shared() {
            Some(shared) => shared.mirror.touch(number, now),
            None => return false,
        };
        // `is_sure`: whether this gateway knows that the visitor is inside.
        let touch = |is_sure| RoomOp::Touch {
            number,
            is_sure,
            ago: Duration::ZERO,
        };
        match touched {
            MirrorTouch::Inside => return true,
            MirrorTouch::Report => {
                self.send_op(touch(true));
                return true;
            }
            MirrorTouch::Query => {}
        }
        let done = self.run_op(touch(false)).await;
        let mut state = self.lock();
        let Some(shared) = state.shared() else {
            return false;
        };
        match done {
            // 1: the store has the session.
            Some(RoomDone::Count(Some(1))) => shared.mirror.begin(number, now),
            Some(_) => {
                shared.mirror.end(number);
                return false;
            }
            // Sessions go on while the store is out.
            None => {}
        }
        true
    }

    /// Answers a poll of a visitor with a ticket in a shared room.
    async fn poll(&self, mut ticket: Signed<Ticket>, bind: &[u8], now: Moment) -> Answered {
        let Some(number) = self.resolve(ticket.value.number).await else {
            self.metrics.count(RoomRequest::Ended);
            return Answered::MustDraw;
        };
        // A number of an outage becomes the store's number: the visitor gets a new text.
        ticket.is_older |= number != ticket.value.number;
        ticket.value.number = number;
        let polled = self.poll_number(number, now).await;
        self.answer_polled(self.lock(), polled, number, Some(ticket), bind, now)
    }

    /// Answers the poll of a visitor. `ticket`: its ticket; `None` if it has shown only a session.
    fn answer_polled(
        &self,
        mut state: MutexGuard<'_, State>,
        polled: Polled,
        number: u64,
        ticket: Option<Signed<Ticket>>,
        bind: &[u8],
        now: Moment,
    ) -> Answered {
        let (answered, counted) = match polled {
            Polled::Inside(call) => {
                if let Some(Signed { value: ticket, .. }) = ticket {
                    let waited = call.at.since(ticket.drawn);
                    self.metrics.waited(waited, ticket.predicted);
                    state.front_wait = Some(waited);
                }
                let session = state.session(number, bind);
                (Answered::Inside(Some(session)), RoomRequest::Came)
            }
            Polled::Waits(waiting) => {
                let text = match ticket {
                    None => Some(state.ticket(number, &waiting, bind, now)),
                    Some(it) if it.is_older => {
                        Some(TicketText(state.signer.ticket(&it.value, bind)))
                    }
                    Some(_) => None,
                };
                (Answered::Waits(waiting, text), RoomRequest::Poll)
            }
            Polled::TooOften(waiting) => (Answered::TooOften(waiting), RoomRequest::TooOften),
            Polled::SentAway if ticket.is_some() => (Answered::SentAway, RoomRequest::Ended),
            Polled::SentAway | Polled::Void => (Answered::MustDraw, RoomRequest::Ended),
        };
        drop(state);
        self.metrics.count(counted);
        answered
    }

    /// Resolves the number of a ticket to the store's number; `None`: the store has none for it.
    async fn resolve(&self, number: u64) -> Option<u64> {
        let known = self.lock().resolve(number);
        let Err(outage) = known else {
            return known.ok();
        };
        match self.run_op(RoomOp::Marked(outage)).await {
            Some(RoomDone::Count(Some(first))) => {
                let mut state = self.lock();
                state.record_store_numbers(outage, first);
                state.resolve(number).ok()
            }
            Some(_) => None,
            // The outage goes on: the number stays as it is.
            None => Some(number),
        }
    }

    /// Polls a shared room for a number: the mirror, and the store if the number may be called.
    async fn poll_number(&self, number: u64, now: Moment) -> Polled {
        let position = {
            let mut state = self.lock();
            let Some(shared) = state.shared() else {
                return Polled::Void;
            };
            match shared.mirror.poll(number, now) {
                MirrorPoll::Answer(polled, poll_due) => {
                    if let Some((position, after)) = poll_due {
                        self.send_op(RoomOp::PollDue { position, after });
                    }
                    return polled;
                }
                MirrorPoll::Query(position) => position,
            }
        };
        let come = RoomOp::Come {
            position,
            number,
            is_again: false,
        };
        let done = self.run_op(come).await;
        let mut state = self.lock();
        let Some(shared) = state.shared() else {
            return Polled::Void;
        };
        match done {
            Some(RoomDone::Came(Some(at))) => {
                shared.mirror.begin(number, now);
                Polled::Inside(Call { at, until: at })
            }
            Some(_) => shared.mirror.not_called(number, now),
            None => {
                shared.mirror.lose();
                match shared.mirror.poll(number, now) {
                    MirrorPoll::Answer(polled, _) => polled,
                    MirrorPoll::Query(_) => Polled::Waits(shared.mirror.answer(number, now)),
                }
            }
        }
    }

    /// Lets in a visitor without a ticket, or gives it a number, if the room is in memory.
    pub fn draw_at_once(&self, bind: &[u8], now: Moment) -> Option<Answered> {
        let mut state = self.lock();
        state.advance(now);
        let keys = state.lottery;
        let is_handed_over = state.is_handed_over;
        let RoomStore::Here(room) = &mut state.store else {
            return None;
        };
        if is_handed_over {
            return Some(Answered::NoNumber);
        }
        let drawn = room.draw(keys, now);
        Some(self.answer_drawn(state, drawn, bind, now))
    }

    /// Lets in a visitor without a ticket, or gives it a number.
    pub async fn draw(&self, bind: &[u8], now: Moment) -> Answered {
        if let Some(answered) = self.draw_at_once(bind, now) {
            return answered;
        }
        let drawn = self.draw_number(now).await;
        self.answer_drawn(self.lock(), drawn, bind, now)
    }

    /// Builds the answer for a drawn number.
    fn answer_drawn(
        &self,
        state: MutexGuard<'_, State>,
        drawn: Drawn,
        bind: &[u8],
        now: Moment,
    ) -> Answered {
        let (answered, counted) = match drawn {
            Drawn::Inside(number) => {
                let session = state.session(number, bind);
                (Answered::Inside(Some(session)), RoomRequest::WalkedIn)
            }
            Drawn::Waits(number, waiting) => {
                let text = state.ticket(number, &waiting, bind, now);
                (Answered::Waits(waiting, Some(text)), RoomRequest::Drew)
            }
            Drawn::NoNumber => (Answered::NoNumber, RoomRequest::NoNumber),
        };
        drop(state);
        self.metrics.count(counted);
        answered
    }

    /// Draws a number in a shared room.
    async fn draw_number(&self, now: Moment) -> Drawn {
        if let Some(shared) = self.lock().shared()
            && shared.mirror.is_out()
        {
            return shared.draw_alone(now);
        }
        let done = self.run_op(RoomOp::Draw).await;
        let mut state = self.lock();
        let Some(shared) = state.shared() else {
            return Drawn::NoNumber;
        };
        let Some(RoomDone::Drawn(number, is_inside)) = done else {
            return shared.draw_alone(now);
        };
        if is_inside {
            shared.mirror.begin(number, now);
            return Drawn::Inside(number);
        }
        let waiting = shared.mirror.answer(number, now);
        let after = Duration::from_secs(waiting.retry_after);
        let position = shared.mirror.room().position(number);
        self.send_op(RoomOp::PollDue { position, after });
        Drawn::Waits(number, waiting)
    }
}

impl SharedRoom {
    /// Draws a number while the store is out.
    fn draw_alone(&mut self, now: Moment) -> Drawn {
        let (number, drawn_count) = self.outage_numbers.draw();
        let waiting = self.mirror.answer_behind(drawn_count, number, now);
        Drawn::Waits(number, waiting)
    }
}

impl State {
    /// Signs a new ticket with the predicted wait.
    fn ticket(
        &self,
        number: u64,
        waiting: &WaitingVisitor,
        bind: &[u8],
        now: Moment,
    ) -> TicketText {
        let ticket = Ticket {
            number,
            drawn: now,
            predicted: waiting.wait,
        };
        TicketText(self.signer.ticket(&ticket, bind))
    }

    /// Signs a session.
    fn session(&self, number: u64, bind: &[u8]) -> SessionText {
        SessionText(self.signer.session(number, bind))
    }
}
