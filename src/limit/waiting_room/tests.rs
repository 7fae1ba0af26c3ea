//! Tests of waiting rooms.
//!
//! A visitor without a free *session* draws a *number* and polls with it. A *call* reserves a
//! session for the visitor, until the next poll or until the call expires (after `claim`). A
//! session expires after `idle` without a request. The *position* is the rank of a number among
//! those who wait.

#![expect(clippy::cast_precision_loss, reason = "the numbers are small")]

use std::num::NonZeroU32;
use std::time::Duration;

use super::*;
use crate::fixtures::{START, secs};
use crate::{Moment, Rate};

pub(super) const KEYS: LotteryKeys = [1, 2, 3, 4, 5, 6];

/// Returns the instant this number of seconds after the beginning.
pub(super) fn at(seconds: f64) -> Moment {
    START + Duration::from_secs_f64(seconds)
}

/// Returns the limits of a room that is open. With 0 sessions, their number is unlimited.
///
/// A session ends after `idle` seconds, and a call after `claim` seconds.
pub(super) fn limits(sessions: u32, admit: &str, idle: u64, claim: u64) -> RoomLimits {
    RoomLimits {
        sessions: NonZeroU32::new(sessions),
        admit: Rate::parse_or_unlimited(admit).unwrap(),
        idle: secs(idle),
        claim: secs(claim),
        opens: None,
        is_paused: false,
    }
}

/// Draws a number for a visitor who must wait.
pub(super) fn draw_waiting(room: &mut WaitingRoom, now: Moment) -> (u64, WaitingVisitor) {
    match room.draw(KEYS, now) {
        Drawn::Waits(number, waiting) => (number, waiting),
        other => panic!("{other:?}"),
    }
}

/// Returns a room with this number of visitors inside, and this number waiting.
fn filled(sessions: u32, waiting: u64) -> WaitingRoom {
    let mut room = WaitingRoom::new(limits(sessions, "none", 60, 10), at(0.0));
    for number in 1..=u64::from(sessions) {
        assert_eq!(room.draw(KEYS, at(0.0)), Drawn::Inside(number));
    }
    for _ in 0..waiting {
        draw_waiting(&mut room, at(0.0));
    }
    room
}

/// Returns the position of a visitor who must go on waiting.
fn position(polled: Polled) -> Option<u64> {
    match polled {
        Polled::Waits(waiting) => waiting.position,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_free_session_is_taken_by_a_visitor_with_a_slightly_earlier_clock() {
    let mut room = WaitingRoom::new(limits(2, "none", 60, 10), at(0.0));
    assert_eq!(room.draw(KEYS, at(0.000_02)), Drawn::Inside(1));
    assert_eq!(room.draw(KEYS, at(0.000_01)), Drawn::Inside(2));
}

#[test]
fn another_opening_is_taken_and_a_room_that_is_open_stays_open() {
    let opening = |seconds| RoomLimits {
        opens: Some(at(seconds)),
        ..limits(2, "none", 60, 10)
    };
    let mut room = WaitingRoom::new(opening(7200.0), at(0.0));
    draw_waiting(&mut room, at(0.0));
    room.reschedule(Some(at(10.0)));
    assert_eq!(room.next_event(), Some(at(10.0)));
    room.advance(KEYS, at(10.0));
    assert!(matches!(room.poll(1, KEYS, at(10.0)), Polled::Inside(_)));
    room.reschedule(Some(at(7200.0)));
    assert_eq!(room.draw(KEYS, at(11.0)), Drawn::Inside(2));
}

#[test]
fn a_session_ends_once_its_visitor_has_asked_nothing_for_idle() {
    let mut room = filled(2, 2);
    assert!(room.touch(1, KEYS, at(50.0)));
    assert_eq!(position(room.poll(3, KEYS, at(59.0))), Some(1));
    // Visitor 2 has left, and visitor 3 has its session; visitor 4 is the first now.
    assert!(matches!(room.poll(3, KEYS, at(60.0)), Polled::Inside(_)));
    assert_eq!(position(room.poll(4, KEYS, at(61.0))), Some(1));
    assert!(!room.touch(2, KEYS, at(61.0)), "its session has ended");
    assert!(room.touch(1, KEYS, at(61.0)));
    assert_eq!(room.counts().left, 1);
}

#[test]
fn a_ticket_is_used_once_and_a_lost_turn_does_not_come_back() {
    let mut room = filled(1, 3);
    assert!(matches!(room.poll(2, KEYS, at(60.0)), Polled::Inside(_)));
    assert_eq!(room.poll(2, KEYS, at(60.0)), Polled::Void);
    for unknown in [0, 1, 5, u64::MAX] {
        let found = room.poll(unknown, KEYS, at(60.0));
        assert_eq!(found, Polled::Void, "{unknown}");
    }
    // Visitor 3 is called when 2 has left, and does not come within 10 s of its due time.
    assert_eq!(position(room.poll(3, KEYS, at(119.0))), Some(1));
    room.advance(KEYS, at(120.0));
    assert_eq!(position(room.poll(4, KEYS, at(129.0))), Some(1));
    assert_eq!(room.state().called, 1);
    assert!(matches!(room.poll(4, KEYS, at(132.1)), Polled::Inside(_)));
    assert_eq!(room.poll(3, KEYS, at(132.2)), Polled::Void);
    let counts = room.counts();
    assert_eq!((counts.called, counts.came, counts.lost), (3, 2, 1));
}

/// The next process does not know a visitor's due time, so it keeps the call longest.
#[test]
fn a_call_is_kept_for_claim_after_the_due_poll_also_over_a_restart() {
    for restarts in [false, true] {
        let mut room = WaitingRoom::new(limits(1, "1r/m", 60, 10), at(0.0));
        for _ in 0..100 {
            room.draw(KEYS, at(0.0));
        }
        let Polled::Waits(waiting) = room.poll(100, KEYS, at(1.0)) else {
            panic!("it waits");
        };
        assert!((45..=60).contains(&waiting.retry_after), "{waiting:?}");
        // All are called at once, long before their due time.
        let quick = RoomLimits {
            sessions: NonZeroU32::new(1000),
            admit: Rate::UNLIMITED,
            ..*room.limits()
        };
        if restarts {
            room = WaitingRoom::restore(room.save(at(2.0)), quick, at(2.0));
        }
        room.retune(quick, KEYS, at(2.0));
        room.advance(KEYS, at(3.0));
        assert_eq!(room.state().called, 99);
        let latest = at(1.0 + waiting.retry_after as f64 + 9.9);
        assert!(matches!(room.poll(100, KEYS, latest), Polled::Inside(_)));
    }
}

#[test]
fn asking_before_the_time_is_allowed_four_times_a_minute() {
    let mut room = filled(100, 100);
    // Each answer contains the next due time, 6 s later and more.
    for nth in 0..10 {
        let found = room.poll(199, KEYS, at(f64::from(nth) * 0.1));
        assert_eq!(matches!(found, Polled::TooOften(_)), nth >= 4, "{nth}");
    }
    let Polled::TooOften(waiting) = room.poll(199, KEYS, at(1.0)) else {
        panic!("it is too often");
    };
    assert_eq!(waiting.position, Some(99));
    // A poll at its due time is allowed, whatever was before.
    let due = 1.0 + waiting.retry_after as f64;
    assert!(matches!(room.poll(199, KEYS, at(due)), Polled::Waits(_)));
    let again = room.poll(199, KEYS, at(due + 0.5));
    assert!(matches!(again, Polled::TooOften(_)));
    // And one early poll more each 15 s.
    let other = room.poll(198, KEYS, at(due + 0.5));
    assert!(matches!(other, Polled::Waits(_)));
}

#[test]
fn nobody_is_called_while_the_room_is_paused_but_by_hand() {
    let mut room = filled(5, 10);
    let paused = RoomLimits {
        is_paused: true,
        ..*room.limits()
    };
    room.retune(paused, KEYS, at(1.0));
    room.advance(KEYS, at(100.0));
    assert_eq!((room.state().inside, room.state().called), (0, 0));
    let (number, waiting) = draw_waiting(&mut room, at(100.0));
    assert_eq!((number, waiting.position), (16, Some(11)));
    assert_eq!(waiting.wait, None);
    assert_eq!(room.call(3, KEYS, at(100.0)), 3);
    assert_eq!(room.call(3, KEYS, at(100.0)), 2, "there are five places");
    assert!(matches!(room.poll(6, KEYS, at(101.0)), Polled::Inside(_)));
    room.retune(limits(100, "none", 60, 10), KEYS, at(102.0));
    assert_eq!((room.state().waiting, room.state().called), (0, 10));
}

#[test]
fn an_emptied_room_sends_all_away_who_wait_and_begins_anew() {
    let mut room = filled(3, 10);
    assert_eq!(room.empty(KEYS, at(1.0)), 10);
    assert_eq!(room.poll(7, KEYS, at(2.0)), Polled::SentAway);
    let (number, waiting) = draw_waiting(&mut room, at(2.0));
    assert_eq!(
        (number, waiting.position),
        (14, Some(1)),
        "those inside have stayed"
    );
    assert!(room.touch(2, KEYS, at(3.0)));
}

#[test]
fn a_session_that_was_free_for_long_earns_no_extra_calls() {
    let mut room = WaitingRoom::new(limits(2, "1r/s", 60, 10), at(0.0));
    assert_eq!(room.draw(KEYS, at(0.0)), Drawn::Inside(1));
    for _ in 0..5 {
        draw_waiting(&mut room, at(0.1));
    }
    room.advance(KEYS, at(1.0));
    assert_eq!(room.state().called, 1);
    // It is full until a minute later; then one per second again.
    room.poll(2, KEYS, at(1.0));
    room.advance(KEYS, at(60.0));
    assert_eq!(room.state().called, 1);
    room.advance(KEYS, at(60.9));
    assert_eq!(room.state().called, 1);
}

#[test]
fn more_numbers_are_drawn_once_they_are_reserved() {
    let mut room = filled(1, 2);
    room.reserve(4);
    assert_eq!(draw_waiting(&mut room, at(1.0)).0, 4);
    assert_eq!(room.draw(KEYS, at(1.0)), Drawn::NoNumber);
    room.reserve(100);
    assert_eq!(draw_waiting(&mut room, at(1.0)).0, 5);
}

#[test]
fn a_saved_room_with_strange_numbers_is_not_sound_or_does_no_harm() {
    let max = u64::MAX;
    let mut restored = 0;
    for (drawn, reserved, called, emptied) in [(1, 1, 9, 7), (9, 1, 1, 0), (max, max, max, max)] {
        for lotteries in [vec![], vec![(0, 0, KEYS)], vec![(max, max, KEYS)]] {
            let saved = SavedRoom {
                drawn,
                reserved,
                called,
                emptied,
                is_open: true,
                next_call: max,
                gaps: vec![(9, 1), (0, max)],
                lotteries,
                sessions: vec![(max, max)],
                calls: vec![(max, max, max), (0, 0, 0)],
            };
            if !saved.is_sound() {
                continue;
            }
            restored += 1;
            let mut room = WaitingRoom::restore(saved, limits(3, "none", 60, 10), at(0.0));
            for number in 0..10 {
                let _any = room.draw(KEYS, at(number as f64));
                let _any = room.poll(number, KEYS, at(number as f64));
            }
            assert!(room.state().inside <= 3, "{:?}", room.state());
        }
    }
    assert_eq!(restored, 4);
}
