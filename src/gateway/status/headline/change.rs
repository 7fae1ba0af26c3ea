//! Finds the change of the file that came just before a warning.

use super::finding::{Finding, Suspicion};
use super::sample::{After, Headline};
use super::words::whole_seconds;
use crate::status::plain::Plain;
use crate::status::sample::ChangeSample;

/// Advice to revert a change.
const TAKE_BACK: &str = "Take the change back if it was not meant.";

/// Describes the last change of the file, for a warning that begins now.
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
        names: names(change).map(str::to_owned).collect(),
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
            .is_none_or(|it| it.as_str() == name)
    };
    match (parts.next(), parts.next()) {
        (Some("log"), _) => false,
        (Some("origins"), Some(name)) => is_about(name),
        // A zone that passes more requests sends more to the gate of the origin.
        (Some("zones"), Some(name)) => !headline.is_of_zone || is_about(name),
        _ => true,
    }
}

/// Names of the changed fields, such as `zones.api.rate`.
fn names(change: &ChangeSample) -> impl Iterator<Item = &str> {
    let texts = change.what.iter().map(Plain::as_str);
    texts.filter_map(|text| text.split_whitespace().next())
}

/// Returns whether a newer change has set one of the same fields.
///
/// Then it does not help to revert the earlier change.
pub(super) fn is_superseded(after: &After, change: Option<&ChangeSample>, time: f64) -> bool {
    // Both times are rounded.
    let newer = change.filter(|change| time - change.ago > after.at + 0.01);
    newer.is_some_and(|newer| names(newer).any(|name| after.names.iter().any(|it| it == name)))
}

/// Adds the sentence about the change to a headline, and the remedy if the change is suspect.
pub(super) fn add(headline: &mut Headline, after: &After) {
    let Finding {
        evidence,
        remedy,
        suspicion,
        ..
    } = &mut headline.finding;
    *evidence = joined(evidence, &after.sentence);
    match suspicion {
        Suspicion::Suspected if after.is_suspect => {
            *remedy = joined(TAKE_BACK, remedy);
        }
        Suspicion::SuspectedAlone if after.is_suspect => {
            TAKE_BACK.clone_into(remedy);
            headline.advised_rate = None;
        }
        _ => {}
    }
}

/// Joins two sentences, of which either may be empty.
fn joined(first: &str, second: &str) -> String {
    let sentences = [first, second].into_iter().filter(|it| !it.is_empty());
    sentences.collect::<Vec<_>>().join(" ")
}
