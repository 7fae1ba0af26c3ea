//! Tests of waiting rooms that do not call, or whose called visitors do not come.
//!
//! `reported` changes a second in which nothing is wrong (`fine`), and checks the headline after
//! ten such seconds: severity, cause and subject. Then `says` checks parts of its text.

use super::*;
use crate::room::report::sample::{Room, RoomSample};
use crate::room::{RoomOverride, RoomValues};

/// A room of five sessions, three of them taken, with twelve waiting visitors.
fn room() -> RoomSample {
    RoomSample {
        room: Room {
            waiting: 12,
            called: 1,
            inside: 2,
            sessions: both(5),
            pace: Some(0.5),
            wait: Some(26.0),
            open: true,
            ..Room::default()
        },
        ..RoomSample::default()
    }
}

/// Adds a room to the origin, and changes it.
fn with(now: &mut Sample, change: impl FnOnce(&mut RoomSample)) {
    let room = now.origins[0].room.insert(room());
    change(room);
}

/// Checks the label of the headline with a changed room.
#[track_caller]
fn reported_with(label: &str, change: impl FnOnce(&mut RoomSample)) -> Reported {
    reported(label, |now| with(now, change))
}

fn paused() -> RoomOverride {
    overriding(RoomValues {
        pause: true,
        ..RoomValues::default()
    })
}

#[test]
fn a_room_that_is_stuck_overridden_or_slow_has_a_headline() {
    reported_with("bad room_stuck api", |room| room.stuck = 8.0)
        .says("The waiting room of api calls nobody, though sessions are free")
        .says("12 visitors wait, 3 of 5 sessions are taken, and nobody has been called for 8.0 s");
    reported_with("warn paused api", |room| {
        room.room.overridden = Some(paused());
    })
    .says("Calling is paused in the waiting room of api while 12 visitors wait")
    .says("ops paused it until 2026-12-01T15:00:00.000Z")
    .not(&["is not as in the file"]);
    reported_with("warn overridden api", |room| {
        room.room.overridden = Some(paused());
        room.room.waiting = 0;
    })
    .says("The waiting room of api is not as in the file")
    .says("paused, until 2026-12-01T15:00:00.000Z, set by ops");
    reported_with("warn overridden api", |room| {
        room.room.overridden = Some(overriding(RoomValues {
            sessions: Some(0),
            admit: "5r/s".parse().ok(),
            pause: false,
        }));
    })
    .says("sessions 0 and admit 5r/s, until");
    reported_with("warn room_waits api", |room| {
        (room.came_lately, room.lost_lately) = (4, 6);
    })
    .says("60 % of those called to api lose their turn")
    .says("6 of 10 calls that ended in the last 5 min");
    reported_with("warn room_waits api", |room| room.room.wait = Some(9000.0))
        .says("A visitor who comes to api now waits 2.5 h")
        .says("12 visitors wait, 3 of 5 sessions are taken, and 0.5 a second are called")
        .says("raise `admit`")
        .not(&["`sessions`"]);
    reported_with("warn room_waits api", |room| {
        room.room.wait = Some(9000.0);
        room.room.inside = 4;
    })
    .says("raise `sessions`")
    .not(&["`admit`"]);
    // While the origin suffers, no more visitors should be let in.
    reported("bad origin_errors api", |now| {
        with(now, |room| room.room.wait = Some(9000.0));
        now.origins[0].codes = counts(&[("5xx", 10)]);
    })
    .says("Also: A visitor who comes to api now waits 2.5 h")
    .not(&["raise `admit`"]);
}

#[test]
fn a_room_that_calls_visitors_as_it_should_has_no_headline() {
    let calm: [fn(&mut RoomSample); 5] = [
        |_| {},
        |room| room.stuck = 4.0,
        |room| (room.came_lately, room.lost_lately) = (5, 5),
        |room| (room.came_lately, room.lost_lately) = (1, 8),
        |room| room.room.wait = Some(7200.0),
    ];
    for (nth, change) in calm.into_iter().enumerate() {
        let mut second = fine();
        with(&mut second, change);
        let reported = after(&second);
        assert_eq!(
            reported.finding.cause.label(),
            "fine",
            "situation {nth}: {reported:?}"
        );
    }
}
