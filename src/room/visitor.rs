//! A visitor's request, from what it presents to what it gets.

use std::sync::Arc;

use super::ticket::{Kept, Ticket};
use super::{OriginRoom, State};
use crate::limit::{Drawn, Moment, Polled, Waiting};
use crate::observe::metrics::RoomRequest;

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
    pub session: Option<Kept<u64>>,
    /// A ticket, which may be used.
    pub ticket: Option<Kept<Ticket>>,
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
        let (mut sessions, mut tickets) = (
            sessions.into_iter().peekable(),
            tickets.into_iter().peekable(),
        );
        if sessions.peek().is_none() && tickets.peek().is_none() {
            return Presented::default();
        }
        let signer = Arc::clone(&self.lock().signer);
        let presented = Presented {
            session: sessions.find_map(|text| signer.read_session(text, bind)),
            ticket: tickets.find_map(|text| signer.read_ticket(text, bind)),
        };
        if presented == Presented::default() {
            self.metrics.count(RoomRequest::Foreign);
        }
        presented
    }

    /// Answers a request by what it presents.
    #[must_use]
    pub fn answer(&self, presented: Presented, bind: &[u8], now: Moment) -> Answered {
        let mut state = self.lock();
        state.advance(now);
        let (answered, counted) = match presented {
            Presented {
                session: Some(kept),
                ..
            } if state.is_inside(kept.into_inner(), now) => {
                let again = kept.is_older();
                let again = again.then(|| state.session(kept.into_inner(), bind));
                (Answered::Inside(again), RoomRequest::Session)
            }
            Presented {
                ticket: Some(kept), ..
            } => self.poll(&mut state, kept, bind, now),
            Presented {
                session: Some(_), ..
            } => (Answered::MustDraw, RoomRequest::Ended),
            Presented { .. } => return Answered::MustDraw,
        };
        drop(state);
        self.metrics.count(counted);
        answered
    }

    fn poll(
        &self,
        state: &mut State,
        kept: Kept<Ticket>,
        bind: &[u8],
        now: Moment,
    ) -> (Answered, RoomRequest) {
        let (ticket, keys) = (kept.into_inner(), state.lottery);
        match state.room.poll(ticket.number, keys, now) {
            Polled::Inside(call) => {
                self.metrics
                    .waited(call.at.since(ticket.drawn), ticket.told);
                let session = state.session(ticket.number, bind);
                (Answered::Inside(Some(session)), RoomRequest::Came)
            }
            Polled::Waits(waiting) => {
                let again = kept.is_older();
                let again = again.then(|| TicketText(state.signer.ticket(&ticket, bind)));
                (Answered::Waits(waiting, again), RoomRequest::Poll)
            }
            Polled::TooOften(waiting) => (Answered::TooOften(waiting), RoomRequest::TooOften),
            Polled::SentAway => (Answered::SentAway, RoomRequest::Ended),
            Polled::Void => (Answered::MustDraw, RoomRequest::Ended),
        }
    }

    /// Lets a visitor in who has no ticket, or gives it a number.
    #[must_use]
    pub fn draw(&self, bind: &[u8], now: Moment) -> Answered {
        let mut state = self.lock();
        state.advance(now);
        let keys = state.lottery;
        let (answered, counted) = match state.room.draw(keys, now) {
            Drawn::Inside(number) => {
                let session = state.session(number, bind);
                (Answered::Inside(Some(session)), RoomRequest::WalkedIn)
            }
            Drawn::Waits(number, waiting) => {
                let ticket = Ticket {
                    number,
                    drawn: now,
                    told: waiting.wait,
                };
                let text = TicketText(state.signer.ticket(&ticket, bind));
                (Answered::Waits(waiting, Some(text)), RoomRequest::Drew)
            }
            Drawn::NoNumber => (Answered::NoNumber, RoomRequest::NoNumber),
        };
        drop(state);
        self.metrics.count(counted);
        answered
    }
}

impl State {
    fn is_inside(&mut self, number: u64, now: Moment) -> bool {
        let keys = self.lottery;
        self.room.touch(number, keys, now)
    }

    fn session(&self, number: u64, bind: &[u8]) -> SessionText {
        SessionText(self.signer.session(number, bind))
    }
}
