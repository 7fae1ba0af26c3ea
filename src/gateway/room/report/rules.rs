//! Rules of the headline for waiting rooms: rooms that do not call, missed calls, and long waits.
//!
//! A *call* of a visitor expires after the time `claim`. A *session* is *taken* by a visitor who is
//! inside, or who was called and has not come yet.

use super::sample::RoomSample;
use crate::origin::report::sample::OriginSample;
use crate::status::headline::finding::{Cause, Finding, Severity};
use crate::status::headline::recent::Recent;
use crate::status::headline::words::{count, pace, part, percent, seconds, whole};

/// Time without a call from which a room that could call is stuck, in seconds.
const STUCK: f64 = 5.0;
/// Minimum number of ended calls from which a conclusion is drawn.
const MIN_CALLS: u64 = 10;
/// Wait above which a room is worth a finding, in seconds.
const LONG_WAIT: f64 = 2.0 * 3600.0;

/// Formats the number of waiting visitors: `1 visitor waits`, `2 visitors wait`.
pub(crate) fn visitors_wait(room: &RoomSample) -> String {
    let waits = if room.room.waiting == 1 {
        "waits"
    } else {
        "wait"
    };
    format!("{} {waits}", count(room.room.waiting, "visitor"))
}

/// Formats the use of sessions, such as "3 of 5 sessions are taken".
fn taken(room: &RoomSample) -> String {
    let taken = room.room.inside + room.room.called;
    match room.room.sessions.now {
        Some(max_sessions) => format!(
            "{} of {} sessions are taken",
            whole(taken),
            whole(max_sessions)
        ),
        None => "sessions are not bounded".to_owned(),
    }
}

/// Rule: a room calls no visitor although it could.
pub(crate) fn stuck(_: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let room = origin.room.as_ref().filter(|room| room.stuck >= STUCK)?;
    let name = &origin.name;
    Some(Finding {
        weight: part(room.room.waiting, 1),
        title: format!("The waiting room of {name} calls nobody, though sessions are free"),
        evidence: format!(
            "{}, {}, and nobody has been called for {}.",
            visitors_wait(room),
            taken(room),
            seconds(room.stuck)
        ),
        remedy: "After a kill the room waits for visitors whose numbers it does not know, but for ten seconds only. Otherwise call some by hand, and report it: this is an error of drip."
            .to_owned(),
        ..Finding::about(name, Cause::RoomStuck, Severity::Bad)
    })
}

/// Rule: many called visitors do not come.
pub(crate) fn turns_lost(_: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let room = origin.room.as_ref()?;
    let lost = room.lost_lately;
    let all = lost + room.came_lately;
    if all < MIN_CALLS || lost * 2 <= all {
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
        ..Finding::about(name, Cause::RoomWaits, Severity::Warn)
    })
}

/// Rule: visitors wait for long.
pub(crate) fn long_wait(_: &Recent<'_>, origin: &OriginSample) -> Option<Finding> {
    let room = origin.room.as_ref()?;
    let wait = room.room.wait.filter(|wait| *wait > LONG_WAIT)?;
    let name = &origin.name;
    let (taken_count, max_sessions) = (room.room.inside + room.room.called, room.room.sessions.now);
    let is_full = max_sessions.is_some_and(|max_sessions| taken_count >= max_sessions);
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
            visitors_wait(room),
            taken(room),
            pace(called)
        ),
        remedy: format!(
            "If {name} can take more, raise `{more}`. If it cannot, say so to those who wait: many would rather come back later."
        ),
        ..Finding::about(name, Cause::RoomWaits, Severity::Warn)
    })
}
