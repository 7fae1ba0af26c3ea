//! Differences of waiting rooms that their shown fields do not contain.

use crate::{Room, RoomSecret, Settings};

/// Compares the secrets of rooms that exist in both settings.
pub(super) fn compare(old: &Settings, new: &Settings, found: &mut Vec<String>) {
    // A route shows `room` only if its origin has one, and that change is already in the list.
    found.retain(|text| {
        let is_shown_alone = [".room none -> true", ".room true -> none"];
        !(text.starts_with("routes[") && is_shown_alone.iter().any(|it| text.ends_with(it)))
    });
    for origin in &new.origins {
        let mut known = old.origins.iter();
        let known = known.find(|known| known.name == origin.name);
        let known = known.and_then(|known| known.room.as_ref());
        let Some((before, after)) = known.zip(origin.room.as_ref()) else {
            continue;
        };
        if shown(before) == shown(after) && before.secret != after.secret {
            found.push(format!(
                "origins.{}.room.secret has another value",
                origin.name
            ));
        }
    }
}

/// Returns the secrets of a room as all outputs show them.
fn shown(room: &Room) -> Vec<RoomSecret> {
    room.secret.iter().map(RoomSecret::hidden).collect()
}
