//! Tickets and sessions that a visitor's request presents, and the answers that it gets.
//!
//! A *ticket* is the signed number of a waiting visitor. A *session* is the signed number of a
//! visitor who is inside. The *texts* of both are in cookies or header fields.

use std::sync::Arc;

use limit::WaitingVisitor;

use super::OriginRoom;
use super::ticket::{Signed, Ticket};

/// Text of a new ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TicketText(pub String);

/// Text of a new session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionText(pub String);

/// Tickets and sessions of a request that this room signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Presented {
    /// Number of a session, which may have ended.
    pub session: Option<Signed<u64>>,
    /// A ticket, which may have been used.
    pub ticket: Option<Signed<Ticket>>,
    /// Index of the text that held the ticket.
    pub ticket_text: usize,
    /// Whether the request presents texts and this room signed none of them.
    pub is_foreign: bool,
}

/// Answer of the room to a visitor.
#[derive(Clone, Debug, PartialEq)]
pub enum Answered {
    /// The visitor has a session. With the text of the session if it is new.
    Inside(Option<SessionText>),
    /// The visitor waits. With the text of its ticket if it is new.
    Waits(WaitingVisitor, Option<TicketText>),
    /// The visitor polls too often.
    TooOften(WaitingVisitor),
    /// An operator sent all waiting visitors away.
    SentAway,
    /// The visitor has no valid ticket: it must draw a number.
    MustDraw,
    /// No number is available yet.
    NoNumber,
}

impl OriginRoom {
    /// Verifies the sessions and tickets of a request. The first valid text of each kind counts.
    ///
    /// `bind`: value that the texts are bound to, such as the client's address.
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
