//! Author of a change through the admin port, and the log lines about changes.

use std::sync::Arc;

use actix_web::{HttpMessage, HttpRequest};
use config::{ChangedBy, History};
use limit::Moment;
use tracing::field::display;

use crate::status::timestamp::timestamp;
use crate::time::clock;

/// Name of a request's token; `None`: the token has no name, or there is no token.
#[derive(Clone, Debug, Default)]
pub(super) struct TokenName(pub(super) Option<Arc<str>>);

/// Author of a request that changes something.
pub(super) struct Author {
    name: Option<Arc<str>>,
    /// Address of the client.
    peer: String,
}

/// A change, as the log shows it.
pub(super) struct Changed<'c> {
    /// Message of the log line.
    pub(super) event: &'static str,
    /// Changed thing.
    pub(super) what: &'c str,
    /// Value before the change.
    pub(super) from: Option<&'c str>,
    /// Value after the change.
    pub(super) to: &'c str,
    /// Expiry; `None`: no expiry.
    pub(super) until: Option<Moment>,
}

impl<'c> Changed<'c> {
    pub(super) fn new(
        event: &'static str,
        what: &'c str,
        from: Option<&'c str>,
        to: &'c str,
    ) -> Self {
        Self {
            event,
            what,
            from,
            to,
            until: None,
        }
    }

    /// Adds an expiry.
    pub(super) fn until(self, until: Option<Moment>) -> Self {
        Self { until, ..self }
    }
}

impl Author {
    /// Reads the author of a request.
    pub(super) fn of(request: &HttpRequest) -> Self {
        let name = request.extensions().get::<TokenName>().cloned();
        let peer = request.peer_addr().map(|peer| peer.ip().to_string());
        Self {
            name: name.unwrap_or_default().0,
            peer: peer.unwrap_or_default(),
        }
    }

    /// Name of the token, or else the address.
    pub(super) fn shown(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.peer)
    }

    /// Records a new override of `subject` in the log and in the history.
    pub(super) fn note_set(
        &self,
        history: &History,
        subject: &str,
        (from, to): (&str, &str),
        until: Moment,
    ) {
        let change = Changed::new("override set", subject, Some(from), to).until(Some(until));
        let (until, by) = (timestamp(until), self.shown());
        self.note(history, &change, &format!("{to} until {until}, by {by}"));
    }

    /// Records the end of an override of `subject` in the log and in the history.
    pub(super) fn note_undone(&self, history: &History, subject: &str, (from, to): (&str, &str)) {
        let change = Changed::new("override undone", subject, Some(from), to);
        self.note(history, &change, change.event);
    }

    /// Records a change in the log, and in the history with this text.
    pub(super) fn note(&self, history: &History, change: &Changed, text: &str) {
        self.log(change);
        let text = format!("{}: {text}", change.what);
        history.add(clock::now(), ChangedBy::Api, vec![text]);
    }

    /// Writes a log line. Each change through the admin port has one.
    pub(super) fn log(&self, change: &Changed) {
        let Changed {
            event,
            what,
            from,
            to,
            until,
        } = *change;
        let by = self.name.as_deref().unwrap_or("admin");
        let (peer, until) = (&*self.peer, until.map(|until| display(timestamp(until))));
        tracing::warn!(by, peer, what, from, to, until, "{event}");
    }
}
