//! Sentences about a rate that would help, from a replay of the last arrivals at faster rates.
//!
//! The advisor (`status/advisor`) makes the replay while the headline is about a zone. Its results
//! are in `ZoneSample::advice`, the slowest rate first.

use super::sample::{RateAdvice, Replayed, ZoneSample};
use crate::status::headline::finding::{Cause, Finding};
use crate::status::headline::words::{percent, seconds};
use crate::status::plain::Plain;
use crate::status::sample::Sample;

/// Wait in seconds from which a longer queue is no remedy: it would only make more requests wait.
const LONG_WAIT: f64 = 5.0;
/// Maximum share of rejected requests that counts as few.
const MAX_FEW: f64 = 0.05;

/// Returns a sentence for the number of limited keys, with a blank before it.
pub(crate) fn limited_keys(zone: &ZoneSample) -> Option<String> {
    let advice = zone.advice.as_ref()?;
    Some(match (advice.keys, advice.limited_keys) {
        (..=1, _) | (_, 0) => return None,
        (all, limited) if all == limited => format!(" All {all} keys are limited."),
        (all, 1) => format!(" 1 of {all} keys is limited."),
        (all, limited) => format!(" {limited} of {all} keys are limited."),
    })
}

/// Returns a sentence for the rejections and waits that faster rates would have caused.
///
/// For example "at 2r/s 1 % would have been rejected in the last 10 min, at 3r/s none; 99 % of the
/// waits would have been no longer than 400 ms".
pub(crate) fn rejections(zone: &ZoneSample) -> Option<String> {
    let advice = zone.advice.as_ref()?;
    let span = seconds(advice.span);
    let share_at = |it: &Replayed| match it.share_rejected {
        ..=0.0 => format!("at {} none", it.rate),
        share => format!("at {} {}", it.rate, percent(share)),
    };
    let (few, none) = (
        slowest_with_few_rejections(advice),
        slowest_without_rejections(advice),
    );
    let first = share_at(few.or(none).or(advice.faster.last())?);
    let mut sentence = format!("{first} would have been rejected in the last {span}");
    if let (Some(_), Some(none)) = (few, none) {
        sentence += &format!(", {}", share_at(none));
    }
    if let Some(wait) = rate_to_try(advice).and_then(|it| it.wait_p99) {
        let wait = seconds(wait);
        sentence += &format!("; 99 % of the waits would have been no longer than {wait}");
    }
    Some(sentence)
}

/// Returns a sentence for the waits at a faster rate.
///
/// For example "at 3r/s 99 % of the waits would have been no longer than 400 ms".
pub(crate) fn waits(zone: &ZoneSample) -> Option<String> {
    let Replayed { rate, wait_p99, .. } = rate_to_try(zone.advice.as_ref()?)?;
    let Some(wait) = wait_p99.map(seconds) else {
        return Some(format!("at {rate} none would have waited"));
    };
    Some(format!(
        "at {rate} 99 % of the waits would have been no longer than {wait}"
    ))
}

/// Returns whether the waits are so long that a longer queue is no remedy.
pub(crate) fn are_waits_long(zone: &ZoneSample) -> bool {
    zone.oldest_wait >= LONG_WAIT
}

/// Returns the advised rate if the remedy of this finding names it.
pub(crate) fn advised_rate(now: &Sample, first: &Finding) -> Option<Plain> {
    if !matches!(first.cause, Cause::Rejecting | Cause::Waiting) {
        return None;
    }
    let zone = now.zone(first.about.as_ref()?)?;
    let rate = &rate_to_try(zone.advice.as_ref()?)?.rate;
    let is_named = first.remedy.contains(&format!("at {rate} "));
    is_named.then(|| rate.clone())
}

/// Returns the rate to try: without rejections, or else with few, or else the fastest one.
fn rate_to_try(advice: &RateAdvice) -> Option<&Replayed> {
    let enough = slowest_without_rejections(advice).or(slowest_with_few_rejections(advice));
    enough.or(advice.faster.last())
}

/// Returns the slowest rate at which the replay rejected no request.
fn slowest_without_rejections(advice: &RateAdvice) -> Option<&Replayed> {
    advice.faster.iter().find(|it| it.share_rejected <= 0.0)
}

/// Returns the slowest rate at which the replay rejected few requests, but some.
fn slowest_with_few_rejections(advice: &RateAdvice) -> Option<&Replayed> {
    let rejects_few = |it: &&Replayed| it.share_rejected > 0.0 && it.share_rejected <= MAX_FEW;
    advice.faster.iter().find(rejects_few)
}
