//! The change of the file that came just before a warning: whether it may be the cause, and its
//! text.
//!
//! A *warning* is a headline about a problem. `past` asks this module when one begins.

use super::finding::{Finding, Suspicion};
use super::sample::{After, Headline};
use super::words::whole_seconds;
use crate::status::plain::Plain;
use crate::status::sample::ChangeSample;

/// Advice to revert a change.
const REVERT_CHANGE: &str = "Take the change back if it was not meant.";

/// Describes the last change of the file, for a warning that begins now; `None`: none to name.
pub(super) fn describe(
    headline: &Headline,
    change: Option<&ChangeSample>,
    time: f64,
) -> Option<After> {
    let change = change.filter(|_| headline.finding.suspicion != Suspicion::Unnamed)?;
    let what: Vec<_> = change.what.iter().map(Plain::as_str).collect();
    let sentence = format!(
        "It began {} after {}.",
        whole_seconds(change.ago),
        what.join("; ")
    );
    Some(After {
        sentence,
        is_suspect: what.iter().any(|text| may_cause(text, headline)),
        at: time - change.ago,
        names: changed_fields(change).map(str::to_owned).collect(),
    })
}

/// Returns whether a changed field may be the cause of a warning.
///
/// A field of another zone or origin, or of `[log]`, cannot be.
fn may_cause(text: &str, headline: &Headline) -> bool {
    let mut parts = text.split(['.', ' ']);
    let is_about = |name| {
        headline
            .finding
            .about
            .as_ref()
            .is_none_or(|about| about.as_str() == name)
    };
    match (parts.next(), parts.next()) {
        (Some("log"), _) => false,
        (Some("origins"), Some(name)) => is_about(name),
        // A zone that passes more requests sends more to the gate of the origin.
        (Some("zones"), Some(name)) => !headline.is_of_zone || is_about(name),
        _ => true,
    }
}

/// Returns the names of the changed fields, such as `zones.api.rate`.
fn changed_fields(change: &ChangeSample) -> impl Iterator<Item = &str> {
    let texts = change.what.iter().map(Plain::as_str);
    texts.filter_map(|text| text.split_whitespace().next())
}

/// Returns whether a newer change has set one of the same fields.
///
/// Then it does not help to revert the earlier change.
pub(super) fn is_superseded(after: &After, change: Option<&ChangeSample>, time: f64) -> bool {
    // Both times are rounded, so a difference up to 0.01 s is none.
    let newer = change.filter(|change| time - change.ago > after.at + 0.01);
    let is_named = |field: &str| after.names.iter().any(|name| name == field);
    newer.is_some_and(|newer| changed_fields(newer).any(is_named))
}

/// Adds the sentence about the change to a headline, and the remedy if the change is suspect.
pub(super) fn add(headline: &mut Headline, after: &After) {
    let Finding {
        evidence,
        remedy,
        suspicion,
        ..
    } = &mut headline.finding;
    *evidence = join_sentences(evidence, &after.sentence);
    match suspicion {
        Suspicion::Suspected if after.is_suspect => {
            *remedy = join_sentences(REVERT_CHANGE, remedy);
        }
        Suspicion::SuspectedAlone if after.is_suspect => {
            REVERT_CHANGE.clone_into(remedy);
            headline.advised_rate = None;
        }
        _ => {}
    }
}

/// Joins two sentences, of which either may be empty.
fn join_sentences(first: &str, second: &str) -> String {
    let sentences = [first, second].into_iter().filter(|it| !it.is_empty());
    sentences.collect::<Vec<_>>().join(" ")
}
