//! Sentences about the rate that would help, in numbers.

use super::sample::{RateAdvice, Replayed, ZoneSample};
use crate::status::headline::finding::{Cause, Finding};
use crate::status::headline::words::{percent, seconds};
use crate::status::plain::Plain;
use crate::status::sample::Sample;

/// Wait from which longer queues only make more requests wait long, in seconds.
const LONG_WAIT: f64 = 5.0;
/// Maximum share of rejections that counts as few.
const FEW: f64 = 0.05;

/// Sentence for the number of limited keys, with a blank before it.
pub(crate) fn limited_keys(zone: &ZoneSample) -> Option<String> {
    let RateAdvice {
        keys, limited_keys, ..
    } = zone.advice.as_ref()?;
    Some(match (keys, limited_keys) {
        (..=1, _) | (_, 0) => return None,
        (all, limited) if all == limited => format!(" All {all} keys are limited."),
        (all, 1) => format!(" 1 of {all} keys is limited."),
        (all, limited) => format!(" {limited} of {all} keys are limited."),
    })
}

/// Sentence for the rejections and waits that faster rates would have caused.
///
/// For example "at 2r/s 1 % would have been rejected in the last 10 min, at 3r/s none; 99 % of the
/// waits would have been no longer than 400 ms".
pub(crate) fn rejections(zone: &ZoneSample) -> Option<String> {
    let advice = zone.advice.as_ref()?;
    let span = seconds(advice.span);
    let would = |it: &Replayed| {
        let share = if it.share_rejected > 0.0 {
            percent(it.share_rejected)
        } else {
            "none".to_owned()
        };
        (it.rate.clone(), share)
    };
    let (few, enough) = (few(advice), enough(advice));
    let wait = rate_to_try(advice).and_then(|it| it.wait_p99);
    let wait = wait.map_or(String::new(), |wait| {
        let wait = seconds(wait);
        format!("; 99 % of the waits would have been no longer than {wait}")
    });
    let rejections = match (few, enough) {
        (Some(few), Some(enough)) => {
            let ((slow, some), (fast, none)) = (would(few), would(enough));
            format!(
                "at {slow} {some} would have been rejected in the last {span}, at {fast} {none}"
            )
        }
        (one, other) => {
            let (rate, share) = would(one.or(other).or(advice.faster.last())?);
            format!("at {rate} {share} would have been rejected in the last {span}")
        }
    };
    Some(rejections + &wait)
}

/// Sentence for the waits at a faster rate.
///
/// For example "at 3r/s 99 % would have waited no longer than 0.4 s".
pub(crate) fn waits(zone: &ZoneSample) -> Option<String> {
    let tried = rate_to_try(zone.advice.as_ref()?)?;
    let rate = &tried.rate;
    Some(match tried.wait_p99 {
        None => format!("at {rate} none would have waited"),
        Some(wait) => {
            let wait = seconds(wait);
            format!("at {rate} 99 % of the waits would have been no longer than {wait}")
        }
    })
}

/// Returns whether waits are so long that more requests should not wait.
pub(crate) fn waits_long(zone: &ZoneSample) -> bool {
    zone.oldest_wait >= LONG_WAIT
}

/// Rate that the remedy of a finding names.
pub(crate) fn advised(now: &Sample, first: &Finding) -> Option<Plain> {
    if !matches!(first.cause, Cause::Rejecting | Cause::Waiting) {
        return None;
    }
    let zone = now.zone(first.about.as_ref()?)?;
    let rate = &rate_to_try(zone.advice.as_ref()?)?.rate;
    let is_named = first.remedy.contains(&format!("at {rate} "));
    is_named.then(|| rate.clone())
}

/// Rate to try: the slowest that is fast enough, or else the fastest that was tried.
fn rate_to_try(advice: &RateAdvice) -> Option<&Replayed> {
    enough(advice).or(few(advice)).or(advice.faster.last())
}

/// Slowest rate without rejections.
fn enough(advice: &RateAdvice) -> Option<&Replayed> {
    advice.faster.iter().find(|it| it.share_rejected <= 0.0)
}

/// Slowest rate with few rejections.
fn few(advice: &RateAdvice) -> Option<&Replayed> {
    let rejects_few = |it: &&Replayed| it.share_rejected > 0.0 && it.share_rejected <= FEW;
    advice.faster.iter().find(rejects_few)
}
