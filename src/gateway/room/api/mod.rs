//! `/api/rooms/{origin}`: acts of operators on a waiting room.
//!
//! They are overrides, calls by hand, emptying, and a message to waiting visitors (`word`).

mod body;

use std::num::NonZeroU32;
use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::web::{Bytes, Data, Path};
use actix_web::{Error, FromRequest, HttpRequest};
use futures_util::future::LocalBoxFuture;
use limit::{Moment, Rate};
use serde_json::json;

use crate::admin::Admin;
use crate::admin::author::{Author, record};
use crate::admin::overrides::{self, OverrideTarget};
use crate::admin::reply::{self, Answer, Refusal};
use crate::room::report::word_status;
use crate::room::{OriginRoom, RoomOverride, RoomValues, RoomWord};
use crate::status::headline::words::count;
use crate::status::timestamp::timestamp;
use crate::time::clock;

/// Room that a request acts on, its configuration, and the author of the request.
pub(crate) struct Target {
    /// The room.
    room: Arc<OriginRoom>,
    /// Configured values of the room.
    file: config::Room,
    /// Author of the request.
    author: Author,
    admin: Data<Admin>,
    body: Bytes,
    /// Time at which the body had arrived.
    now: Moment,
}

impl Target {
    /// Finds the room of an origin.
    fn of(author: Author, admin: Data<Admin>, origin: &str, body: Bytes) -> Result<Self, Refusal> {
        let gateway = admin.serving()?;
        let origins = &gateway.settings().origins;
        let found = origins.iter().enumerate().find_map(|(index, it)| {
            let file = it.room.as_ref().filter(|_| it.name == origin)?;
            Some((Arc::clone(gateway.room(index)?), file.clone()))
        });
        let Some((room, file)) = found else {
            let names: Vec<_> = gateway.rooms().map(|room| &*room.origin).collect();
            let names = names.join(", ");
            let message = if names.is_empty() {
                "no origin has a waiting room; add [origins.NAME.room] to the file".to_owned()
            } else {
                format!("origin {origin:?} has no waiting room; these have one: {names}")
            };
            return Err(reply::not_found(message));
        };
        Ok(Self {
            room,
            file,
            author,
            admin,
            body,
            now: clock::now(),
        })
    }

    /// Records an act on the room in the log and in the history.
    fn note(
        &self,
        event: &'static str,
        (from, to): (&str, &str),
        until: Option<Moment>,
        text: &str,
    ) {
        let subject = subject(&self.room);
        self.author.log(event, &subject, (Some(from), to), until);
        let text = format!("{text}, by {}", self.author.shown());
        record(&self.admin.history, &subject, &text);
    }

    /// Sets or ends the message to waiting visitors. Returns the previous one.
    fn set_word(&self, word: Option<&RoomWord>) -> Option<RoomWord> {
        let before = self.room.set_word(word.cloned());
        if word.is_none() && before.is_none() {
            return None;
        }
        let (event, text) = match word {
            Some(word) => ("word set", format!("word until {}", timestamp(word.until))),
            None => ("word undone", "word undone".to_owned()),
        };
        let from = before.as_ref().map_or("none", |it| &*it.text);
        let to = word.map_or("none", |it| &*it.text);
        self.note(event, (from, to), word.map(|word| word.until), &text);
        before
    }
}

impl FromRequest for Target {
    type Error = Error;
    type Future = LocalBoxFuture<'static, Result<Self, Error>>;

    /// Finds the room only when the body has arrived, because an upload may outlast a reload.
    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let author = Author::of(request);
        let parts = <(Data<Admin>, Path<String>, Bytes)>::from_request(request, payload);
        Box::pin(async move {
            let (admin, origin, body) = parts.await?;
            Ok(Self::of(author, admin, &origin, body)?)
        })
    }
}

impl OverrideTarget for Target {
    type Values = RoomValues;

    const SHOWN_AT: &'static str = "/api/origins";

    fn subject(&self) -> String {
        subject(&self.room)
    }

    fn configured(&self) -> RoomValues {
        RoomValues {
            sessions: Some(self.file.sessions.map_or(0, NonZeroU32::get)),
            admit: Some(self.file.admit.unwrap_or(Rate::UNLIMITED)),
            pause: false,
        }
    }

    fn replace(&self, new: Option<RoomOverride>) -> Result<Option<RoomOverride>, Refusal> {
        Ok(self.room.set_override(new, self.now))
    }
}

/// `PUT`: sets the override of a room.
pub(crate) async fn set(target: Target) -> Answer {
    let Target { author, admin, .. } = &target;
    let requested = body::requested(&target.body, target.now, author.shown())?;
    overrides::set(&target, &requested, author, &admin.history)
}

/// `DELETE`: ends the override of a room.
pub(crate) async fn end(target: Target) -> Answer {
    overrides::end(&target, &target.author, &target.admin.history)
}

/// Creates the refusal while the room's store does not answer.
fn no_store() -> Refusal {
    reply::unavailable("Redis, which keeps the room, does not answer; try again later")
}

/// `POST`: calls visitors.
pub(crate) async fn call(target: Target) -> Answer {
    let requested = body::count(&target.body)?;
    let before = target.room.status(target.now).state;
    if !before.is_open {
        return Err(reply::conflict(
            "the room has not opened yet: no visitor has a position",
        ));
    }
    let called = target.room.call(requested, target.now).await;
    let called = called.ok_or_else(no_store)?;
    let from = format!("{} waiting", before.waiting);
    let to = format!("{called} of {requested} called");
    let text = format!("{called} of {requested} visitors called");
    target.note("visitors called", (&from, &to), None, &text);
    Ok(reply::ok(&json!({ "called": called })))
}

/// `POST`: sends all waiting and called visitors away.
pub(crate) async fn empty(target: Target) -> Answer {
    let word = body::parting_word(&target.body, target.now)?;
    let before = target.room.status(target.now).state;
    // Set the message before the first visitor learns that its position is lost.
    if let Some(word) = &word {
        target.set_word(Some(word));
    }
    let sent_away = target.room.empty(target.now).await;
    let sent_away = sent_away.ok_or_else(no_store)?;
    let from = format!("{} waiting, {} called", before.waiting, before.called);
    let to = format!("{sent_away} sent away");
    let text = format!("emptied, {} sent away", count(sent_away, "visitor"));
    target.note("room emptied", (&from, &to), None, &text);
    Ok(reply::ok(&json!({ "sent_away": sent_away })))
}

/// `PUT`: sets the message to visitors.
pub(crate) async fn set_word(target: Target) -> Answer {
    let word = body::word(&target.body, target.now)?;
    target.set_word(Some(&word));
    Ok(reply::ok(&word_status(&word)))
}

/// `DELETE`: ends the message to visitors.
pub(crate) async fn end_word(target: Target) -> Answer {
    let ended = target.set_word(None).ok_or_else(|| {
        reply::not_found("this room has no word for waiting visitors; /api/origins shows all rooms")
    })?;
    Ok(reply::ok(&word_status(&ended)))
}

/// Returns the name of a room in the log and in the history of changes.
pub(crate) fn subject(room: &OriginRoom) -> String {
    format!("origins.{}.room", room.origin)
}
