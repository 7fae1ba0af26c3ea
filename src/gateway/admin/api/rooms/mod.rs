//! Acts on a waiting room: overrides, calls by hand, and a message to waiting visitors.

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
use crate::admin::api::body::joined;
use crate::admin::author::{Author, record};
use crate::admin::reply::{self, Answer, Refusal};
use crate::room::report::{overridden, word as word_view};
use crate::room::{OriginRoom, RoomOverride, RoomWord};
use crate::status::headline::words::count;
use crate::status::timestamp::timestamp;
use crate::time::clock;

/// Room that a request acts on, its configuration, and the author of the request.
pub(super) struct Target {
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
    fn of(author: Author, admin: Data<Admin>, origin: &str, body: Bytes) -> Result<Self, Refusal> {
        let gateway = admin.serving()?;
        let origins = &gateway.settings().origins;
        let found = origins.iter().enumerate().find_map(|(index, it)| {
            let file = it.room.as_ref().filter(|_| it.name == origin)?;
            Some((Arc::clone(gateway.room(index)?), file.clone()))
        });
        let Some((room, file)) = found else {
            let names: Vec<_> = gateway.rooms().map(|room| room.origin()).collect();
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

    /// Looks the room up when the body has arrived: an upload may outlast a reload.
    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let author = Author::of(request);
        let parts = <(Data<Admin>, Path<String>, Bytes)>::from_request(request, payload);
        Box::pin(async move {
            let (admin, origin, body) = parts.await?;
            Ok(Self::of(author, admin, &origin, body)?)
        })
    }
}

/// `PUT`: sets the override of a room.
pub(super) async fn set(target: Target) -> Answer {
    let Target { room, author, .. } = &target;
    let requested = body::requested(&target.body, target.now, author.shown())?;
    let before = room.set_override(Some(requested.clone()), target.now);
    let from = before.map_or_else(|| in_file(&target.file), |it| what(&it));
    let (subject, values) = (subject(room), (&*from, &*what(&requested)));
    author.note_set(&target.admin.history, &subject, values, requested.until);
    Ok(reply::ok(&overridden(&requested)))
}

/// `DELETE`: ends the override of a room.
pub(super) async fn end(target: Target) -> Answer {
    let Target { room, author, .. } = &target;
    let ended = room.set_override(None, target.now).ok_or_else(|| {
        reply::not_found("nothing is overridden here; /api/origins shows what is")
    })?;
    let values = (&*what(&ended), &*in_file(&target.file));
    author.note_undone(&target.admin.history, &subject(room), values);
    Ok(reply::ok(&overridden(&ended)))
}

/// Refusal while the room's store does not respond.
fn no_store() -> Refusal {
    reply::unavailable("Redis, which keeps the room, does not answer; try again later")
}

/// `POST`: calls visitors.
pub(super) async fn call(target: Target) -> Answer {
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
pub(super) async fn empty(target: Target) -> Answer {
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
pub(super) async fn set_word(target: Target) -> Answer {
    let word = body::word(&target.body, target.now)?;
    target.set_word(Some(&word));
    Ok(reply::ok(&word_view(&word)))
}

/// `DELETE`: ends the message to visitors.
pub(super) async fn end_word(target: Target) -> Answer {
    let ended = target.set_word(None).ok_or_else(|| {
        reply::not_found("this room has no word for waiting visitors; /api/origins shows all rooms")
    })?;
    Ok(reply::ok(&word_view(&ended)))
}

/// Name of a room in the log and the history of changes.
pub(in crate::admin) fn subject(room: &OriginRoom) -> String {
    format!("origins.{}.room", room.origin())
}

/// Formats the configured values.
fn in_file(file: &config::Room) -> String {
    let values = RoomOverride {
        sessions: Some(file.sessions),
        admit: Some(file.admit),
        ..RoomOverride::default()
    };
    format!("the file: {}", what(&values))
}

/// Formats the values of an override.
fn what(it: &RoomOverride) -> String {
    let (sessions, admit) = (it.sessions, it.admit);
    joined([
        sessions.map(|it| format!("sessions {}", it.map_or(0, NonZeroU32::get))),
        admit.map(|it| format!("admit {}", it.unwrap_or(Rate::UNLIMITED))),
        it.is_paused.then(|| "paused".to_owned()),
    ])
}
