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
        self.log("override set", subject, (Some(from), to), Some(until));
        let (until, by) = (timestamp(until), self.shown());
        record(history, subject, &format!("{to} until {until}, by {by}"));
    }

    /// Records the end of an override of `subject` in the log and in the history.
    pub(super) fn note_undone(&self, history: &History, subject: &str, (from, to): (&str, &str)) {
        let event = "override undone";
        self.log(event, subject, (Some(from), to), None);
        record(history, subject, event);
    }

    /// Writes a log line. Each change through the admin port has one.
    ///
    /// `from` and `to`: values before and after the change. `until`: expiry of the change.
    pub(super) fn log(
        &self,
        event: &'static str,
        what: &str,
        (from, to): (Option<&str>, &str),
        until: Option<Moment>,
    ) {
        let by = self.name.as_deref().unwrap_or("admin");
        let (peer, until) = (&*self.peer, until.map(|until| display(timestamp(until))));
        tracing::warn!(by, peer, what, from, to, until, "{event}");
    }
}

/// Records a change of `subject` in the history.
pub(super) fn record(history: &History, subject: &str, text: &str) {
    let text = format!("{subject}: {text}");
    history.add(clock::now(), ChangedBy::Api, vec![text]);
}
