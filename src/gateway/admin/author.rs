//! Author of a change through the admin port, and the log lines and history entries of changes.

use std::sync::Arc;

use actix_web::{HttpMessage, HttpRequest};
use config::{ChangedBy, History};
use limit::Moment;
use tracing::field::display;

use crate::status::timestamp::timestamp;
use crate::time::clock;

/// Name of a request's token; `None`: the token has no name, or there is no token.
#[derive(Clone, Debug, Default)]
pub(crate) struct TokenName(pub(crate) Option<Arc<str>>);

/// Author of a request that changes something.
pub(crate) struct Author {
    /// Name of the request's token; `None`: it has no name, or there is no token.
    name: Option<Arc<str>>,
    /// Address of the client.
    peer: String,
}

impl Author {
    /// Reads the author of a request.
    pub(crate) fn of(request: &HttpRequest) -> Self {
        let name = request.extensions().get::<TokenName>().cloned();
        let peer = request.peer_addr().map(|peer| peer.ip().to_string());
        Self {
            name: name.unwrap_or_default().0,
            peer: peer.unwrap_or_default(),
        }
    }

    /// Returns the name of the token, or else the address.
    pub(crate) fn shown(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.peer)
    }

    /// Writes a log line. Each change through the admin port has one.
    ///
    /// `subject`: name of the changed thing. `from` and `to`: values before and after the change.
    /// `until`: expiry of the change.
    pub(crate) fn log(
        &self,
        event: &'static str,
        subject: &str,
        (from, to): (Option<&str>, &str),
        until: Option<Moment>,
    ) {
        let by = self.name.as_deref().unwrap_or("admin");
        let (peer, until) = (&*self.peer, until.map(|until| display(timestamp(until))));
        tracing::warn!(by, peer, what = subject, from, to, until, "{event}");
    }
}

/// Records a change of `subject` in the history.
pub(crate) fn record(history: &History, subject: &str, text: &str) {
    let text = format!("{subject}: {text}");
    history.add(clock::now(), ChangedBy::Api, vec![text]);
}
