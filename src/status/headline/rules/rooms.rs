//! The waiting rooms of origins: who is called, who comes, and how long the others wait.

use super::super::finding::{Cause, Finding, Severity};
use super::super::recent::Recent;
use super::super::words::{count, listed, pace, part, percent, seconds, whole};
use crate::status::views::Suspicion;
use crate::status::views::{OriginSample, Plain, RoomSample};

/// From this time without a call on, a room that could call is stuck, in seconds.
const STUCK: f64 = 5.0;
/// Fewer calls that ended are no trend.
const FEW: u64 = 10;
/// From this wait on it is worth a headline, in seconds.
const LONG: f64 = 2.0 * 3600.0;
/// From so many polls a second on, and from this part of all requests on, they are most of the load.
const POLLS: (f64, f64) = (50.0, 0.8);
/// From this part of the polls on, those that come too early are the reason.
const EARLY: f64 = 0.1;

/// `1 visitor waits`, `2 visitors wait`.
fn waiting(room: &RoomSample) -> String {
    let waits = if room.room.waiting == 1 {
        "waits"
    } else {
        "wait"
    };
    format!("{} {waits}", count(room.room.waiting, "visitor"))
}

/// Such as `3 of 5 places are taken`.
fn taken(room: &RoomSample) -> String {
    let taken = room.room.inside + room.room.called;
    match room.room.sessions.now {
        Some(places) => format!("{} of {} places are taken", whole(taken), whole(places)),
        None => "places are not bounded".to_owned(),
    }
}

pub(super) fn stuck(_: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let room = origin.room.as_ref().filter(|room| room.stuck >= STUCK)?;
    let name = &origin.name;
    Some(Finding {
        weight: part(room.room.waiting, 1),
        title: format!("The waiting room of {name} calls nobody, though places are free"),
        evidence: format!(
            "{}, {}, and nobody has been called for {}.",
            waiting(room),
            taken(room),
            seconds(room.stuck)
        ),
        remedy: "After a kill the room waits for visitors whose numbers it does not know, but for ten seconds only. Otherwise call some by hand, and report it: this is an error of drip."
            .to_owned(),
        ..Finding::about(name, Cause::RoomStuck, Severity::Bad)
    })
}

pub(super) fn paused_room(_: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let room = origin.room.as_ref()?;
    let it = room.room.overridden.as_ref().filter(|it| it.pause)?;
    if room.room.waiting == 0 {
        return None;
    }
    let name = &origin.name;
    Some(Finding {
        weight: part(room.room.waiting, 1),
        title: format!(
            "Calling is paused in the waiting room of {name} while {}",
            waiting(room)
        ),
        evidence: format!("{} paused it until {}.", it.by, it.until),
        remedy: "Resume it by undoing the override, or wait until it ends. A word tells those who wait why."
            .to_owned(),
        suspicion: Suspicion::Unnamed,
        ..Finding::about(name, Cause::RoomPaused, Severity::Warn)
    })
}

pub(super) fn turns_lost(_: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let room = origin.room.as_ref()?;
    let lost = room.lost_lately;
    let all = lost + room.came_lately;
    if all < FEW || lost * 2 <= all {
        return None;
    }
    let (name, share) = (&origin.name, part(lost, all));
    Some(Finding {
        weight: share,
        title: format!("{} of those called to {name} lose their turn", percent(share)),
        evidence: format!(
            "{} of {} that ended in the last 5 min: nobody came within `claim`.",
            whole(lost),
            count(all, "call")
        ),
        remedy: "If these visitors have given up, shorten the wait: each keeps a place free for `claim`. If they come too late, raise `claim`."
            .to_owned(),
        ..Finding::about(name, Cause::RoomTurnsLost, Severity::Warn)
    })
}

pub(super) fn long_wait(_: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let room = origin.room.as_ref()?;
    let wait = room.room.wait.filter(|wait| *wait > LONG)?;
    let name = &origin.name;
    let is_full = room
        .room
        .sessions
        .now
        .is_some_and(|places| room.room.inside + room.room.called >= places);
    let more = if is_full { "sessions" } else { "admit" };
    let called = room.room.pace.unwrap_or_default();
    Some(Finding {
        weight: wait,
        title: format!(
            "A visitor who comes to {name} now waits {:.1} h",
            wait / 3600.0
        ),
        evidence: format!(
            "{}, {}, and {} are called.",
            waiting(room),
            taken(room),
            pace(called)
        ),
        remedy: format!(
            "If {name} can take more, raise `{more}`. If it cannot, say so to those who wait: many would rather come back later."
        ),
        ..Finding::about(name, Cause::RoomLongWait, Severity::Warn)
    })
}

pub(super) fn polls(recent: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    origin.room.as_ref()?;
    let requests = recent.counts(origin, |it| Some(&it.room.as_ref()?.room.requests));
    let of = |kind: &str| {
        requests
            .get(&Plain::from(kind))
            .copied()
            .unwrap_or_default()
    };
    let early = of("too_often");
    let polls = of("poll") + early;
    // Requests of those inside end at the origin, as do those of routes without the room.
    let turned_away = ["drew", "draw_refused", "no_number"].map(of);
    let all = polls + turned_away.iter().sum::<u64>() + recent.ended_at_origin(origin);
    let (a_second, share) = (part(polls, 1) / recent.seconds(), part(polls, all));
    if a_second <= POLLS.0 || share <= POLLS.1 {
        return None;
    }
    let name = &origin.name;
    let remedy = if part(early, polls) >= EARLY {
        format!(
            "{} of them come earlier than they were told to: find their clients in the access log, and limit or deny them.",
            percent(part(early, polls))
        )
    } else {
        "They come when they were told to, so it is the length of the line: a poll costs the gateway as much as a rejected request."
            .to_owned()
    };
    Some(Finding {
        weight: share,
        title: format!(
            "{} of the requests for {name} only ask whether it is their turn",
            percent(share)
        ),
        evidence: format!(
            "{}, {}.",
            recent.share_of(polls, all, "request"),
            pace(a_second)
        ),
        remedy,
        ..Finding::about(name, Cause::RoomPolls, Severity::Warn)
    })
}

pub(super) fn overridden_room(_: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let room = origin.room.as_ref()?;
    let it = room.room.overridden.as_ref()?;
    if it.pause && room.room.waiting > 0 {
        return None;
    }
    let name = &origin.name;
    let sessions = it.sessions.map(|it| match it {
        0 => "its places are not bounded".to_owned(),
        places => format!("it has {}", count(places, "place")),
    });
    let admit = it
        .admit
        .as_ref()
        .map(|admit| format!("its pace is {admit}"));
    let pause = it.pause.then(|| "calling is paused".to_owned());
    let what: Vec<_> = [sessions, admit, pause].into_iter().flatten().collect();
    let (until, by) = (&it.until, &it.by);
    Some(Finding {
        title: format!("The waiting room of {name} is not as in the file"),
        evidence: format!("{}, until {until}, set by {by}.", listed(&what)),
        remedy: "Undo the override, or write its numbers into the file.".to_owned(),
        suspicion: Suspicion::Unnamed,
        ..Finding::about(name, Cause::Overridden, Severity::Warn)
    })
}
