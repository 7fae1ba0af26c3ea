//! Bodies of requests that act on a waiting room.

use limit::{MAX_SESSIONS, Moment, Rate};
use serde::Deserialize;

use crate::admin::body::{check_line, parse, span, value};
use crate::admin::overrides;
use crate::admin::reply::{self, Refusal};
use crate::room::{RoomOverride, RoomValues, RoomWord};

/// Maximum length of a message to visitors, in characters.
const MAX_WORD: usize = 500;
/// Maximum number of visitors that one request calls.
const MAX_CALL: u64 = 1_000_000;

/// Body of a PUT for an override.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct OverrideBody {
    sessions: Option<u32>,
    admit: Option<String>,
    pause: Option<bool>,
    r#for: Option<String>,
}

/// Body of a POST that calls visitors.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct CallBody {
    /// Number of visitors to call.
    count: u64,
}

/// Body of a PUT of a message, or of a POST that empties the room.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct WordBody {
    word: Option<String>,
    r#for: Option<String>,
}

/// Parses the body of a PUT for an override. `by`: author of the override.
pub(super) fn requested(body: &[u8], now: Moment, by: &str) -> Result<RoomOverride, Refusal> {
    let example = r#"{"admit": "5r/s", "for": "10m"}, with sessions, admit, pause and for"#;
    let body: OverrideBody = parse(body, example)?;
    if let Some(sessions) = body.sessions.filter(|it| *it > MAX_SESSIONS) {
        return Err(reply::bad_request(format!(
            "sessions is {sessions}; it must be from 0 to {MAX_SESSIONS}, 0 means unbounded"
        )));
    }
    let values = RoomValues {
        sessions: body.sessions,
        admit: body.admit.as_deref().map(admit).transpose()?,
        pause: body.pause.unwrap_or(false),
    };
    let fields = "sessions, admit or \"pause\": true";
    overrides::requested(values, fields, body.r#for, by, now)
}

/// Parses a pace in the format of the file.
fn admit(text: &str) -> Result<Rate, Refusal> {
    if text == "none" {
        return Ok(Rate::UNLIMITED);
    }
    let rate: Rate = value("admit", text)?;
    if rate.per_second() > config::Room::MAX_ADMIT {
        return Err(reply::bad_request(format!(
            "admit is {text:?}; a room lets in at most 1000 visitors a second; \"none\" lets them in as fast as sessions become free"
        )));
    }
    Ok(rate)
}

/// Parses the number of visitors to call.
pub(super) fn count(body: &[u8]) -> Result<u64, Refusal> {
    let CallBody { count } = parse(body, r#"{"count": 10}"#)?;
    if !(1..=MAX_CALL).contains(&count) {
        return Err(reply::bad_request(format!(
            "count is {count}; it must be from 1 to {MAX_CALL}"
        )));
    }
    Ok(count)
}

/// Parses the body of a PUT of a message.
pub(super) fn word(body: &[u8], now: Moment) -> Result<RoomWord, Refusal> {
    let body = parse(body, r#"{"word": "We continue at 11:00", "for": "1h"}"#)?;
    new_word(body, now)
}

/// Parses the body of a POST that empties the room: it may be empty, or contain a message.
pub(super) fn parting_word(body: &[u8], now: Moment) -> Result<Option<RoomWord>, Refusal> {
    if body.is_empty() {
        return Ok(None);
    }
    let body: WordBody = parse(body, r#"{} or {"word": "Sold out", "for": "1h"}"#)?;
    let has_word = body.word.is_some() || body.r#for.is_some();
    has_word.then(|| new_word(body, now)).transpose()
}

/// Checks a message and its duration.
fn new_word(body: WordBody, now: Moment) -> Result<RoomWord, Refusal> {
    let text = body.word.unwrap_or_default().trim().to_owned();
    check_line("word", &text, MAX_WORD)?;
    Ok(RoomWord {
        text,
        until: now + span(body.r#for)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_override_differs_from_the_file_and_has_an_end() {
        let now = Moment::default();
        let read = |body: &str| requested(body.as_bytes(), now, "ops");
        let all = read(r#"{"sessions": 0, "admit": "none", "pause": true, "for": "10m"}"#);
        let unbounded = RoomValues {
            sessions: Some(0),
            admit: Some(Rate::UNLIMITED),
            pause: true,
        };
        assert_eq!(all.unwrap().values, unbounded);
        for (body, says) in [
            ("", "JSON such as"),
            ("{}", "nothing differs"),
            (r#"{"pause": false, "for": "1m"}"#, "nothing differs"),
            (r#"{"sessions": 5}"#, "for is missing"),
            (r#"{"sessions": 1000001, "for": "1m"}"#, "from 0 to 1000000"),
            (r#"{"sessions": -1, "for": "1m"}"#, "JSON such as"),
            (r#"{"admit": "fast", "for": "1m"}"#, "admit is \"fast\""),
            (r#"{"admit": "2000r/s", "for": "1m"}"#, "at most 1000"),
            (r#"{"pause": true, "for": "25h"}"#, "from 1s to 24h"),
            (r#"{"paused": true, "for": "1m"}"#, "unknown field"),
        ] {
            let error = read(body).unwrap_err().to_string();
            assert!(error.contains(says), "{body}: {error}");
        }
    }

    #[test]
    fn a_word_is_one_line_of_500_characters() {
        let word = |text: &str| {
            let body = WordBody {
                word: Some(text.to_owned()),
                r#for: Some("1m".to_owned()),
            };
            new_word(body, Moment::default()).map(|word| word.text)
        };
        assert_eq!(word(" Sold out ").unwrap(), "Sold out");
        assert_eq!(word(&"é".repeat(500)).unwrap().chars().count(), 500);
        for wrong in ["", "  ", "a\nb", "a\u{7}", &"é".repeat(501)] {
            assert!(word(wrong).is_err(), "{wrong:?}");
        }
    }
}
