//! The waiting room of an origin in words.

use super::numbers::{moment, wait};
use crate::status::views::{Room, RoomSample};

/// Who is where, such as `12 waiting, 1 called, 2 of 5 inside, wait 26.0s`.
pub(in crate::tools::top) fn visitors(room: &Room) -> String {
    let told = room.wait.map(|it| format!(", wait {}", wait(it)));
    format!(
        "{} waiting, {} called, {} inside{}",
        room.waiting,
        room.called,
        inside(room),
        told.unwrap_or_default()
    )
}

/// Who is inside, such as `2 of 5`.
pub(in crate::tools::top) fn inside(room: &Room) -> String {
    match room.sessions.now {
        Some(places) => format!("{} of {places}", room.inside),
        None => room.inside.to_string(),
    }
}

/// The pace of calls, such as `0.50/s`; `None` while nothing bounds it.
pub(in crate::tools::top) fn pace(room: &Room) -> Option<String> {
    Some(format!("{:.2}/s", room.pace?))
}

/// What became of calls, such as `0.50/s called, 4 came and 1 lost the turn in 5 min`.
pub(in crate::tools::top) fn calls(room: &RoomSample) -> String {
    let pace = pace(&room.room).map(|pace| format!("{pace} called, "));
    format!(
        "{}{} came and {} lost the turn in 5 min",
        pace.unwrap_or_default(),
        room.came_lately,
        room.lost_lately
    )
}

/// What is out of the ordinary, such as `paused until ... by ops`; `None` if nothing is.
pub(in crate::tools::top) fn special(room: &Room) -> Option<String> {
    if let Some(it) = &room.overridden {
        let what = if it.pause {
            "paused"
        } else {
            "not as in the file"
        };
        let until = moment(it.until.as_str());
        return Some(format!("{what} until {until}, by {}", it.by));
    }
    let opens = room.opens.as_ref().filter(|_| !room.open)?;
    Some(format!("opens {}", moment(opens.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::views::{FileAndNow, RoomOverride};

    #[test]
    fn a_room_is_told_in_a_few_words() {
        let mut room = RoomSample {
            room: Room {
                waiting: 12,
                called: 1,
                inside: 2,
                wait: Some(26.0),
                pace: Some(0.5),
                open: true,
                ..Room::default()
            },
            came_lately: 4,
            lost_lately: 1,
            stuck: 0.0,
        };
        assert_eq!(
            visitors(&room.room),
            "12 waiting, 1 called, 2 inside, wait 26.0s"
        );
        let calls = calls(&room);
        assert_eq!(calls, "0.50/s called, 4 came and 1 lost the turn in 5 min");
        assert_eq!(special(&room.room), None);
        room.room.sessions = FileAndNow {
            file: Some(5),
            now: Some(4),
        };
        assert_eq!(inside(&room.room), "2 of 4");
        room.room.opens = Some("2026-12-01T10:00:00.000Z".into());
        assert_eq!(special(&room.room), None, "it is open");
        room.room.open = false;
        let opens = special(&room.room);
        assert_eq!(opens.as_deref(), Some("opens 2026-12-01 10:00:00 UTC"));
        room.room.overridden = Some(RoomOverride {
            pause: true,
            until: "2026-12-01T09:00:00.000Z".into(),
            by: "ops".into(),
            ..RoomOverride::default()
        });
        let paused = special(&room.room);
        let expected = "paused until 2026-12-01 09:00:00 UTC, by ops";
        assert_eq!(paused.as_deref(), Some(expected));
    }
}
