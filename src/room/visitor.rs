//! A visitor's request, from what it presents to what it gets.

use std::sync::Arc;
use std::time::Duration;

use super::shared::SharedRoom;
use super::ticket::{Signed, Ticket};
use super::{Kept, OriginRoom, State};
use crate::limit::{Call, Drawn, MirrorPoll, MirrorTouch, Moment, Polled, Waiting};
use crate::observe::metrics::RoomRequest;
use crate::store::{RoomDone, RoomOp};

/// The text of a new ticket for its visitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TicketText(pub String);

/// The text of a new session for its visitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionText(pub String);

/// What a request presents that this room signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Presented {
    /// The number of a session, which may have ended.
    pub session: Option<Signed<u64>>,
    /// A ticket, which may be used.
    pub ticket: Option<Signed<Ticket>>,
    /// Index of the text that the ticket was read from.
    pub ticket_text: usize,
}

/// What a visitor gets.
#[derive(Clone, Debug, PartialEq)]
pub enum Answered {
    /// It is inside. The text of its session if that is new.
    Inside(Option<SessionText>),
    /// It waits. The text of its ticket if that is new.
    Waits(Waiting, Option<TicketText>),
    /// It asks too often.
    TooOften(Waiting),
    /// All who waited were sent away.
    SentAway,
    /// It has no ticket, or none that is good any more: it must draw a number.
    MustDraw,
    /// There is no number for it yet.
    NoNumber,
}

impl OriginRoom {
    /// Reads what a request presents: the texts of sessions and of tickets, in the order in which
    /// they count.
    #[must_use]
    pub fn read<'t>(
        &self,
        sessions: impl IntoIterator<Item = &'t [u8]>,
        tickets: impl IntoIterator<Item = &'t [u8]>,
        bind: &[u8],
    ) -> Presented {
        let mut sessions = sessions.into_iter().peekable();
        let mut tickets = tickets.into_iter().peekable();
        if sessions.peek().is_none() && tickets.peek().is_none() {
            return Presented::default();
        }
        let signer = Arc::clone(&self.lock().signer);
        let session = sessions.find_map(|text| signer.read_session(text, bind));
        let mut tickets = tickets.enumerate();
        let ticket = tickets.find_map(|(nth, text)| Some((nth, signer.read_ticket(text, bind)?)));
        let (ticket_text, ticket) = ticket.unzip();
        let presented = Presented {
            session,
            ticket,
            ticket_text: ticket_text.unwrap_or_default(),
        };
        if presented == Presented::default() {
            self.metrics.count(RoomRequest::Foreign);
        }
        presented
    }

    /// Answers a request by what it presents.
    pub async fn answer(&self, presented: Presented, bind: &[u8], now: Moment) -> Answered {
        let Presented {
            session, ticket, ..
        } = presented;
        if let Some(session) = session
            && self.is_inside(session.into_inner(), now).await
        {
            self.metrics.count(RoomRequest::Session);
            let again = session.is_older();
            let again = again.then(|| self.lock().session(session.into_inner(), bind));
            return Answered::Inside(again);
        }
        if let Some(ticket) = ticket {
            return self.poll(ticket, bind, now).await;
        }
        match session {
            Some(session) => self.resume(session.into_inner(), bind, now),
            None => Answered::MustDraw,
        }
    }

    /// Answers a visitor with a session that is not inside: it has ended, or it began in the second
    /// before the process was killed, so that its number is still called, or waits.
    fn resume(&self, number: u64, bind: &[u8], now: Moment) -> Answered {
        let mut state = self.lock();
        let keys = state.lottery;
        let polled = match &mut state.kept {
            Kept::Here(room) => room.poll(number, keys, now),
            Kept::Shared(_) => Polled::Void,
        };
        let (answered, counted) = match polled {
            Polled::Inside(_) => {
                let session = state.session(number, bind);
                (Answered::Inside(Some(session)), RoomRequest::Came)
            }
            Polled::Waits(waiting) => {
                let text = state.ticket(number, &waiting, bind, now);
                (Answered::Waits(waiting, Some(text)), RoomRequest::Poll)
            }
            Polled::TooOften(waiting) => (Answered::TooOften(waiting), RoomRequest::TooOften),
            Polled::SentAway | Polled::Void => (Answered::MustDraw, RoomRequest::Ended),
        };
        drop(state);
        self.metrics.count(counted);
        answered
    }

    /// Records that a visitor with a session asks. Returns whether it is inside.
    async fn is_inside(&self, number: u64, now: Moment) -> bool {
        let is_sure = {
            let mut state = self.lock();
            state.advance(now);
            let keys = state.lottery;
            match &mut state.kept {
                Kept::Here(room) => return room.touch(number, keys, now),
                Kept::Shared(shared) => match shared.mirror.touch(number, now) {
                    MirrorTouch::Inside => return true,
                    MirrorTouch::Tell => true,
                    MirrorTouch::Ask => false,
                },
            }
        };
        let op = RoomOp::Touch {
            number,
            is_sure,
            ago: Duration::ZERO,
        };
        if is_sure {
            self.tell(op);
            return true;
        }
        let done = self.ask(op).await;
        let mut state = self.lock();
        let Kept::Shared(shared) = &mut state.kept else {
            return false;
        };
        match done {
            Some(RoomDone::Count(Some(1))) => shared.mirror.begin(number, now),
            Some(_) => {
                shared.mirror.end(number);
                return false;
            }
            // Those with a session go on while the store is out.
            None => {}
        }
        true
    }

    async fn poll(&self, signed: Signed<Ticket>, bind: &[u8], now: Moment) -> Answered {
        let mut ticket = signed.into_inner();
        let mut is_new = signed.is_older();
        let Some(number) = self.number(ticket.number).await else {
            self.metrics.count(RoomRequest::Ended);
            return Answered::MustDraw;
        };
        is_new |= number != ticket.number;
        ticket.number = number;
        if self.lock().is_handed_over {
            return Answered::NoNumber;
        }
        let polled = self.polled(ticket.number, now).await;
        let mut state = self.lock();
        let (answered, counted) = match polled {
            Polled::Inside(call) => {
                let waited = call.at.since(ticket.drawn);
                self.metrics.waited(waited, ticket.told);
                state.front_wait = Some(waited);
                let session = state.session(ticket.number, bind);
                (Answered::Inside(Some(session)), RoomRequest::Came)
            }
            Polled::Waits(waiting) => {
                let again = is_new.then(|| TicketText(state.signer.ticket(&ticket, bind)));
                (Answered::Waits(waiting, again), RoomRequest::Poll)
            }
            Polled::TooOften(waiting) => (Answered::TooOften(waiting), RoomRequest::TooOften),
            Polled::SentAway => (Answered::SentAway, RoomRequest::Ended),
            Polled::Void => (Answered::MustDraw, RoomRequest::Ended),
        };
        drop(state);
        self.metrics.count(counted);
        answered
    }

    /// The number of a ticket by now; `None`: it has none.
    async fn number(&self, number: u64) -> Option<u64> {
        let known = self.lock().number(number);
        let Err(outage) = known else {
            return known.ok();
        };
        match self.ask(RoomOp::Marked(outage)).await {
            Some(RoomDone::Count(Some(first))) => {
                let mut state = self.lock();
                state.know_outage(outage, first);
                state.number(number).ok()
            }
            Some(_) => None,
            // The outage goes on.
            None => Some(number),
        }
    }

    async fn polled(&self, number: u64, now: Moment) -> Polled {
        let place = {
            let mut state = self.lock();
            state.advance(now);
            let keys = state.lottery;
            let shared = match &mut state.kept {
                Kept::Here(room) => return room.poll(number, keys, now),
                Kept::Shared(shared) => shared,
            };
            match shared.mirror.poll(number, now) {
                MirrorPoll::Answer(polled, told) => {
                    if let Some((place, after)) = told {
                        self.tell(RoomOp::Told { place, after });
                    }
                    return polled;
                }
                MirrorPoll::Ask(place) => place,
            }
        };
        let done = self.ask(RoomOp::Come {
            place,
            number,
            is_again: false,
        });
        let done = done.await;
        let mut state = self.lock();
        let Kept::Shared(shared) = &mut state.kept else {
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
                    MirrorPoll::Ask(_) => Polled::Waits(shared.mirror.tell(number, now)),
                }
            }
        }
    }

    /// Lets a visitor in who has no ticket, or gives it a number.
    pub async fn draw(&self, bind: &[u8], now: Moment) -> Answered {
        if self.lock().is_handed_over {
            return Answered::NoNumber;
        }
        let drawn = self.drawn(now).await;
        let state = self.lock();
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

    async fn drawn(&self, now: Moment) -> Drawn {
        {
            let mut state = self.lock();
            state.advance(now);
            let keys = state.lottery;
            match &mut state.kept {
                Kept::Here(room) => return room.draw(keys, now),
                Kept::Shared(shared) if shared.mirror.is_out() => return shared.draw_alone(now),
                Kept::Shared(_) => {}
            }
        }
        let done = self.ask(RoomOp::Draw).await;
        let mut state = self.lock();
        let Kept::Shared(shared) = &mut state.kept else {
            return Drawn::NoNumber;
        };
        let Some(RoomDone::Drawn(number, is_inside)) = done else {
            return shared.draw_alone(now);
        };
        if is_inside {
            shared.mirror.begin(number, now);
            return Drawn::Inside(number);
        }
        let waiting = shared.mirror.tell(number, now);
        let after = Duration::from_secs(waiting.retry_after);
        let place = shared.mirror.place(number);
        self.tell(RoomOp::Told { place, after });
        Drawn::Waits(number, waiting)
    }
}

impl SharedRoom {
    /// Draws a number while the store is out.
    fn draw_alone(&mut self, now: Moment) -> Drawn {
        let (number, nth) = self.marks.draw();
        Drawn::Waits(number, self.mirror.tell_behind(nth, number, now))
    }
}

impl State {
    fn ticket(&self, number: u64, waiting: &Waiting, bind: &[u8], now: Moment) -> TicketText {
        let ticket = Ticket {
            number,
            drawn: now,
            told: waiting.wait,
        };
        TicketText(self.signer.ticket(&ticket, bind))
    }

    fn session(&self, number: u64, bind: &[u8]) -> SessionText {
        SessionText(self.signer.session(number, bind))
    }
}
