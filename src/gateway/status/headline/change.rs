//! The change of the file after which a warning began.

use super::words::whole_seconds;
use crate::status::views::{ChangeSample, Headline, Plain};

/// Causes that somebody set on purpose, or that are a mistake in the file themselves.
const OWN_REASON: [&str; 6] = [
    "file_error",
    "file_doubtful",
    "maintenance",
    "overridden",
    "paused",
    "room_paused",
];

/// Causes whose remedy may be to take the change back.
///
/// Not that an origin hangs or is slow: to take a lower rate back would send it more requests.
const MAYBE_CAUSED: [&str; 4] = ["origin_errors", "origin_failing", "rejecting", "waiting"];

/// The begin of remedies of `rules/zones.rs` that give a client a plan.
const ONE_CLIENT: &str = "One client";

const TAKE_BACK: &str = "Take the change back if it was not meant.";

/// The sentence that names the last change, for a warning that begins now.
pub(super) fn sentence(headline: &Headline, change: Option<&ChangeSample>) -> Option<Plain> {
    let change = change.filter(|_| !OWN_REASON.contains(&headline.cause.as_str()))?;
    let what: Vec<_> = change.what.iter().map(Plain::as_str).collect();
    let (ago, what) = (whole_seconds(change.ago), what.join("; "));
    Some(Plain::new(&format!("It began {ago} after {what}.")))
}

/// Adds the sentence to a headline, and what helps if the change is the reason.
pub fn add(headline: &mut Headline, sentence: &Plain) {
    headline.evidence = joined(&headline.evidence, sentence.as_str());
    if !MAYBE_CAUSED.contains(&headline.cause.as_str()) {
        return;
    }
    // A client that had enough before the change needs no plan of its own.
    if headline.remedy.as_str().starts_with(ONE_CLIENT) {
        headline.remedy = TAKE_BACK.into();
        headline.advised_rate = None;
    } else {
        headline.remedy = joined(&TAKE_BACK.into(), headline.remedy.as_str());
    }
}

fn joined(text: &Plain, more: &str) -> Plain {
    Plain::new(format!("{text} {more}").trim())
}
