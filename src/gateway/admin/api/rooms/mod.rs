//! Acting in a waiting room: other values for a while, calls by hand, and a word to those who wait.

mod body;

use std::num::NonZeroU32;
use std::sync::Arc;

use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use actix_web::web::{Bytes, Data, Path};
use config::{self, ChangedBy};
use limit::{Moment, Rate};
use serde_json::json;

use crate::admin::Admin;
use crate::admin::author::{Author, Changed};
use crate::admin::reply::{self, Answer, Refusal};
use crate::http::gateway::Gateway;
use crate::room::{OriginRoom, RoomOverride, RoomWord};
use crate::status::headline::words::count;
use crate::status::rooms::{overridden, word as word_view};
use crate::status::timestamp::timestamp;
use crate::time::clock;

/// A room that a request acts in, and what the file says of it.
struct Target {
    gateway: Arc<Gateway>,
    index: usize,
    author: Author,
    now: Moment,
}

impl Target {
    fn of(request: &HttpRequest, admin: &Admin, origin: &str) -> Result<Self, Refusal> {
        let gateway = admin.serving()?;
        let mut rooms = gateway.settings().origins.iter();
        let index = rooms.position(|it| it.name == origin && it.room.is_some());
        let Some(index) = index.filter(|index| gateway.room(*index).is_some()) else {
            let names: Vec<_> = gateway.rooms().map(|room| room.origin()).collect();
            let names = names.join(", ");
            let message = if names.is_empty() {
                "no origin has a waiting room; add [origins.NAME.room] to the file".to_owned()
            } else {
                format!("origin {origin:?} has no waiting room; these have one: {names}")
            };
            return Err(Refusal::new(StatusCode::NOT_FOUND, message));
        };
        Ok(Self {
            gateway,
            index,
            author: Author::of(request),
            now: clock::now(),
        })
    }

    fn room(&self) -> Result<(&OriginRoom, &config::Room), Refusal> {
        let file = self.gateway.settings().origins.get(self.index);
        let file = file.and_then(|it| it.room.as_ref());
        let room = self.gateway.room(self.index).map(|room| &**room);
        room.zip(file).ok_or_else(reply::not_now)
    }
}

pub(super) async fn set(
    request: HttpRequest,
    admin: Data<Admin>,
    origin: Path<String>,
    body: Bytes,
) -> Answer {
    let target = Target::of(&request, &admin, &origin)?;
    let (room, file) = target.room()?;
    let wanted = body::wanted(&body, target.now, target.author.shown())?;
    let before = room.set_override(Some(wanted.clone()), target.now);
    let from = before.map_or_else(|| in_file(file), |it| what(&it));
    let (place, values) = (place(room), (&*from, &*what(&wanted)));
    let author = &target.author;
    author.note_set(&admin.history, &place, values, wanted.until);
    Ok(reply::ok(&overridden(&wanted)))
}

pub(super) async fn end(request: HttpRequest, admin: Data<Admin>, origin: Path<String>) -> Answer {
    let target = Target::of(&request, &admin, &origin)?;
    let (room, file) = target.room()?;
    let Some(ended) = room.set_override(None, target.now) else {
        let message = "nothing is overridden here; /api/origins says what is";
        return Err(Refusal::new(StatusCode::NOT_FOUND, message));
    };
    let values = (&*what(&ended), &*in_file(file));
    let author = &target.author;
    author.note_undone(&admin.history, &place(room), values);
    Ok(reply::ok(&overridden(&ended)))
}

/// The room is in a store that does not answer.
fn no_store() -> Refusal {
    let message = "Redis, which keeps the room, does not answer; try again once it does";
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message)
}

pub(super) async fn call(
    request: HttpRequest,
    admin: Data<Admin>,
    origin: Path<String>,
    body: Bytes,
) -> Answer {
    let target = Target::of(&request, &admin, &origin)?;
    let (room, _) = target.room()?;
    let wanted = body::count(&body)?;
    let before = room.status(target.now).state;
    if !before.is_open {
        let message = "the room has not opened, so nobody has a place in line yet";
        return Err(Refusal::new(StatusCode::CONFLICT, message));
    }
    let called = room.call(wanted, target.now).await.ok_or_else(no_store)?;
    let (place, by) = (place(room), target.author.shown());
    target.author.log(&Changed {
        event: "visitors called",
        what: &place,
        from: Some(&format!("{} waiting", before.waiting)),
        to: &format!("{called} of {wanted} called"),
        until: None,
    });
    let text = format!("{place}: {called} of {wanted} visitors called, by {by}");
    admin.history.add(target.now, ChangedBy::Api, vec![text]);
    Ok(reply::ok(&json!({ "called": called })))
}

pub(super) async fn empty(
    request: HttpRequest,
    admin: Data<Admin>,
    origin: Path<String>,
    body: Bytes,
) -> Answer {
    let target = Target::of(&request, &admin, &origin)?;
    let (room, _) = target.room()?;
    let word = body::parting_word(&body, target.now)?;
    let before = room.status(target.now).state;
    // It is there before the first one learns that its place is gone.
    if let Some(word) = &word {
        set_word_in(&target, &admin, Some(word))?;
    }
    let sent_away = room.empty(target.now).await.ok_or_else(no_store)?;
    let (place, by) = (place(room), target.author.shown());
    target.author.log(&Changed {
        event: "room emptied",
        what: &place,
        from: Some(&format!(
            "{} waiting, {} called",
            before.waiting, before.called
        )),
        to: &format!("{sent_away} sent away"),
        until: None,
    });
    let text = format!(
        "{place}: emptied, {} sent away, by {by}",
        count(sent_away, "visitor")
    );
    admin.history.add(target.now, ChangedBy::Api, vec![text]);
    Ok(reply::ok(&json!({ "sent_away": sent_away })))
}

pub(super) async fn set_word(
    request: HttpRequest,
    admin: Data<Admin>,
    origin: Path<String>,
    body: Bytes,
) -> Answer {
    let target = Target::of(&request, &admin, &origin)?;
    let word = body::word(&body, target.now)?;
    set_word_in(&target, &admin, Some(&word))?;
    Ok(reply::ok(&word_view(&word)))
}

pub(super) async fn end_word(
    request: HttpRequest,
    admin: Data<Admin>,
    origin: Path<String>,
) -> Answer {
    let target = Target::of(&request, &admin, &origin)?;
    let ended = set_word_in(&target, &admin, None)?;
    let ended = ended.ok_or_else(|| {
        let message = "this room has no word to those who wait; /api/origins says which have";
        Refusal::new(StatusCode::NOT_FOUND, message)
    })?;
    Ok(reply::ok(&word_view(&ended)))
}

/// Sets or ends the word to those who wait. Returns the one before.
fn set_word_in(
    target: &Target,
    admin: &Admin,
    word: Option<&RoomWord>,
) -> Result<Option<RoomWord>, Refusal> {
    let (room, _) = target.room()?;
    let before = room.set_word(word.cloned());
    if word.is_none() && before.is_none() {
        return Ok(None);
    }
    let (place, by) = (place(room), target.author.shown());
    let (event, text) = match word {
        Some(word) => ("word set", format!("word until {}", timestamp(word.until))),
        None => ("word undone", "word undone".to_owned()),
    };
    target.author.log(&Changed {
        event,
        what: &place,
        from: Some(before.as_ref().map_or("none", |word| &word.text)),
        to: word.map_or("none", |word| &word.text),
        until: word.map(|word| word.until),
    });
    let text = format!("{place}: {text}, by {by}");
    admin.history.add(target.now, ChangedBy::Api, vec![text]);
    Ok(before)
}

/// A room, as the log and the history of changes name it.
pub(in crate::admin) fn place(room: &OriginRoom) -> String {
    format!("origins.{}.room", room.origin())
}

/// What the file says where nothing is overridden, as text.
fn in_file(file: &config::Room) -> String {
    let values = values(&RoomOverride {
        sessions: Some(file.sessions),
        admit: Some(file.admit),
        ..RoomOverride::default()
    });
    format!("the file: {}", values.join(", "))
}

/// What an override says, as text.
fn what(it: &RoomOverride) -> String {
    let mut parts = values(it);
    if it.is_paused {
        parts.push("paused".to_owned());
    }
    parts.join(", ")
}

fn values(it: &RoomOverride) -> Vec<String> {
    let sessions = it.sessions;
    let sessions = sessions.map(|it| format!("sessions {}", it.map_or(0, NonZeroU32::get)));
    let admit = it
        .admit
        .map(|it| format!("admit {}", it.unwrap_or(Rate::UNLIMITED)));
    [sessions, admit].into_iter().flatten().collect()
}
