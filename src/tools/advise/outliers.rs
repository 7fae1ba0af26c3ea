//! Keys that come so much faster than all others that no limit should be made for them.

use std::fmt::Write;
use std::io;

use super::keys::Peaks;
use super::pace::recommend;
use super::survey::Surveyed;
use super::trial::Candidate;

/// How many times as fast as the next key an outlier is.
const FACTOR: u32 = 3;
/// The slowest outlier, in requests within a second. Less is no abuse.
const SLOWEST: u32 = 10;
/// The fewest keys among which one can stand out.
const MIN_KEYS: u64 = 5;
/// The most outliers.
const MAX_OUTLIERS: u64 = 4;
/// One key in so many may be an outlier.
const ONE_IN: u64 = 10;

/// The keys without a plan for which the numbers are not made.
#[derive(Debug)]
pub(super) struct Outliers {
    /// The fastest first; at least one.
    keys: Vec<Peaks>,
    /// The most requests of the next key within a second.
    next: u32,
    /// The rate and burst that would fit them, too.
    with: Candidate,
}

impl Outliers {
    /// Finds the outliers, and sets their requests aside, so that no number is made for them.
    ///
    /// With hours that are named good or bad there are none, nor if the user wants the numbers for
    /// all keys: the user has said what the numbers are to be made for.
    ///
    /// # Errors
    ///
    /// Returns an error if the temporary file cannot be read.
    pub(super) fn set_aside(survey: &mut Surveyed) -> io::Result<Option<Self>> {
        let (keys, group) = (&survey.rest.keys, &survey.rest);
        if survey.is_for_all() || keys.dropped > 0 || keys.count < MIN_KEYS {
            return Ok(None);
        }
        let most = usize::try_from((keys.count / ONE_IN).clamp(1, MAX_OUTLIERS)).unwrap_or(1);
        let within = |key: &Peaks| key.peaks[0];
        let stands_out = |of: &usize| {
            let (last, next) = (&keys.top[*of - 1], &keys.top[*of]);
            within(last) >= SLOWEST && within(last) >= FACTOR.saturating_mul(within(next))
        };
        let Some(of) = (1..=most.min(keys.top.len().saturating_sub(1)))
            .rev()
            .find(stands_out)
        else {
            return Ok(None);
        };
        let Some(with) = recommend(group)?.map(|pace| pace.chosen.candidate) else {
            return Ok(None);
        };
        let (found, next) = (keys.top[..of].to_vec(), within(&keys.top[of]));
        let slots = found.iter().filter_map(|key| key.slot).collect();
        survey.rest.set_aside(slots, next);
        Ok(Some(Self {
            keys: found,
            next,
            with,
        }))
    }

    /// Says who stands out, and how the numbers would be with them. One sentence a line.
    pub(super) fn told(&self, chosen: Candidate) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = match &self.keys[..] {
            [key] => writeln!(
                text,
                "One key is {} times the next: {} came {} times in a second, the next one {}.",
                key.peaks[0] / self.next.max(1),
                key.shown(),
                key.peaks[0],
                self.next
            ),
            keys => {
                let names = keys
                    .iter()
                    .map(|key| format!("{} ({})", key.shown(), key.peaks[0]));
                let names: Vec<String> = names.collect();
                writeln!(
                    text,
                    "{} keys are at least {FACTOR} times the next in a second: {}; the next one {}.",
                    keys.len(),
                    names.join(", "),
                    self.next
                )
            }
        };
        let it = if self.keys.len() == 1 { "it" } else { "them" };
        let Candidate { rate, burst } = chosen;
        let _ = writeln!(
            text,
            "The numbers are made without {it}: {rate}, burst {burst}. With {it} they would be {}, burst {}.\n\
             The gate for the origin counts {it}, too.",
            self.with.rate, self.with.burst
        );
        text
    }
}
