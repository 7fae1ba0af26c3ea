//! Status of the origins' waiting rooms, as the API and the live samples show it.
//!
//! `sample` has the types of the JSON, `sampler` takes the samples of each second, `metrics` writes
//! the metrics. `rules` has the rules of the headline.

pub(crate) mod metrics;
pub(crate) mod rules;
pub(crate) mod sample;
pub(crate) mod sampler;

use limit::{Rate, RoomCounts};

use super::{OriginRoom, RoomStatus, RoomWord};
use crate::gate::report::sample::ConfiguredAndEffective;
use crate::status::counts::counted;
use crate::status::plain::Plain;
use crate::status::timestamp::timestamp;

/// Returns the counts of visitors by event, with the name of each event.
///
/// A visitor `walked_in` without waiting, or `drew` a number. A waiting visitor was `called`, or
/// `sent_away`. After the call it `came`, or the call expired: `lost`. When its session ended, it
/// `left`.
pub(crate) fn events(counts: &RoomCounts) -> [(&'static str, u64); 7] {
    [
        ("walked_in", counts.walked_in),
        ("drew", counts.drew),
        ("called", counts.called),
        ("came", counts.came),
        ("lost", counts.lost),
        ("left", counts.left),
        ("sent_away", counts.sent_away),
    ]
}

/// Returns the status of a room, with all counts since it began. `file`: configured values.
pub(crate) fn room_status(
    room: &OriginRoom,
    file: &config::Room,
    status: &RoomStatus,
) -> sample::Room {
    let RoomStatus { state, limits, .. } = status;
    let admit = (!limits.admit.is_unlimited()).then_some(limits.admit);
    let text = |rate: Rate| Plain::new(&rate.to_string());
    let pace = state.pace;
    let is_wait_known = state.waiting > 0 && state.is_open && !limits.is_paused;
    // Predicted wait, in seconds, of a visitor who comes now: behind all who wait.
    let wait = (state.waiting + 1) as f64 / pace;
    sample::Room {
        waiting: state.waiting,
        called: state.called,
        inside: state.inside,
        sessions: ConfiguredAndEffective {
            file: file.sessions.map(|it| it.get().into()),
            now: limits.sessions.map(|it| it.get().into()),
        },
        admit: ConfiguredAndEffective {
            file: file.admit.map(text),
            now: admit.map(text),
        },
        pace: Some(pace).filter(|it| it.is_finite()),
        wait: Some(wait).filter(|it| is_wait_known && it.is_finite()),
        front_wait: status.front_wait.map(|it| it.as_secs_f64()),
        open: state.is_open,
        opens: limits.opens.map(timestamp),
        events: counted(events(&status.counts)),
        requests: counted(room.metrics.requests.each()),
        overridden: status.overridden.clone(),
        word: status.word.as_ref().map(word_status),
    }
}

/// Returns the status of a message to waiting visitors.
pub(crate) fn word_status(it: &RoomWord) -> sample::RoomWord {
    sample::RoomWord {
        word: Plain::new(&it.text),
        until: timestamp(it.until),
    }
}
