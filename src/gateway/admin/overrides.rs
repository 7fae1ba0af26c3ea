//! Sets and ends overrides of a zone, a key, a gate or a waiting room.
//!
//! An override is values in place of those of the file, until it expires.

use config::History;
use limit::Moment;
use serde::Serialize;

use super::author::{Author, record};
use super::body::span;
use super::reply::{self, Answer, Refusal};
use crate::overrides::{Overridable, Override};
use crate::status::timestamp::timestamp;

/// Zone, key, gate or waiting room whose configured values can be overridden.
pub(crate) trait OverrideTarget {
    /// Values that can be overridden.
    type Values: Overridable + Serialize + Clone;

    /// Path of the API that shows the overrides.
    const SHOWN_AT: &'static str;

    /// Name in the log and in the history of changes.
    fn subject(&self) -> String;

    /// Configured values.
    fn configured(&self) -> Self::Values;

    /// Replaces the override; `None` ends it. Returns the previous one.
    fn replace(
        &self,
        new: Option<Override<Self::Values>>,
    ) -> Result<Option<Override<Self::Values>>, Refusal>;
}

/// Creates an override without an owner. `fields`: the fields that can differ, for the error.
pub(crate) fn requested<V: Overridable>(
    values: V,
    fields: &str,
    duration: Option<String>,
    by: &str,
    now: Moment,
) -> Result<Override<V>, Refusal> {
    if values == V::default() {
        return Err(reply::bad_request(format!(
            "nothing differs from the file; give {fields}, or undo an override by DELETE"
        )));
    }
    Ok(Override {
        values,
        since: now,
        until: now + span(duration)?,
        by: by.into(),
        owner: None,
    })
}

/// Sets an override, and records it in the log and in the history.
pub(crate) fn set<T: OverrideTarget>(
    target: &T,
    new: &Override<T::Values>,
    author: &Author,
    history: &History,
) -> Answer {
    let before = target.replace(Some(new.clone()))?;
    let from = before.map_or_else(|| describe_configured(target), |it| join_texts(&it.values));
    let (subject, to) = (target.subject(), join_texts(&new.values));
    author.log(
        "override set",
        &subject,
        (Some(&from), &to),
        Some(new.until),
    );
    let (until, by) = (timestamp(new.until), author.shown());
    record(history, &subject, &format!("{to} until {until}, by {by}"));
    Ok(reply::ok(new))
}

/// Ends an override, and records that in the log and in the history.
pub(crate) fn end<T: OverrideTarget>(target: &T, author: &Author, history: &History) -> Answer {
    let ended = target.replace(None)?.ok_or_else(|| {
        let shown_at = T::SHOWN_AT;
        reply::not_found(format!(
            "nothing is overridden here; {shown_at} shows what is"
        ))
    })?;
    let (subject, event) = (target.subject(), "override undone");
    let (from, to) = (join_texts(&ended.values), describe_configured(target));
    author.log(event, &subject, (Some(&from), &to), None);
    record(history, &subject, event);
    Ok(reply::ok(&ended))
}

/// Formats the configured values for the log.
fn describe_configured(target: &impl OverrideTarget) -> String {
    let values = join_texts(&target.configured());
    let values = if values.is_empty() {
        "no rate"
    } else {
        &values
    };
    format!("the file: {values}")
}

/// Formats values for the log.
fn join_texts(values: &impl Overridable) -> String {
    values.texts().join(", ")
}
