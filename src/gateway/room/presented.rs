//! What a visitor presents, and what it gets.

use std::sync::Arc;

use limit::Waiting;

use super::OriginRoom;
use super::ticket::{Signed, Ticket};

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
    /// Whether it presents texts, and this room signed none of them.
    pub is_foreign: bool,
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
        Presented {
            session,
            ticket,
            ticket_text: ticket_text.unwrap_or_default(),
            is_foreign: session.is_none() && ticket.is_none(),
        }
    }
}
