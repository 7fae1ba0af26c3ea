use std::io;

use super::hours::Class;
use super::survey::{Survey, Surveyed};
use super::trial::{Candidate, Trial, level, most_in_a_minute};
use crate::limit::Rate;

/// The fastest rate that a file may have, in requests a second.
pub(super) const FASTEST: u64 = 1_000_000;

/// The longest allowed wait at a rate in requests a minute, in seconds.
///
/// It equals the longest wait at a rate that is the peak of a second. There, the full count may
/// come at the end of one second and again at the start of the next.
pub(super) const LONGEST_WAIT: u32 = 2;

/// The recommended rate and burst, and their effect.
pub struct Advice {
    pub(super) survey: Surveyed,
    /// The recommended rate and burst.
    pub(super) chosen: Trial,
    /// The recommendation and its neighbours, ordered by rate and then by burst.
    pub(super) trials: Vec<Trial>,
    pub(super) reach: Reach,
    /// The same rate computed for the bad hours.
    ///
    /// Set if the recommended rate is in requests a minute, and no key comes twice within a second
    /// in the bad hours either.
    pub(super) bad_pace: Option<Rate>,
}

/// Whether the rate keeps out the traffic of the bad hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// No hours are named bad, or they have no requests.
    NoneBad,
    /// A key of the bad hours comes faster than the rate.
    Below,
    /// No key of the bad hours does, so the pace of single keys is not what is bad about them.
    Above,
}

impl Advice {
    /// Chooses a rate and burst and tries them; `None` if the log has no requests to judge by.
    ///
    /// # Errors
    ///
    /// Returns an error if the temporary file cannot be read.
    pub fn new(survey: Survey) -> io::Result<Option<Self>> {
        let survey = survey.end()?;
        if survey.spool.len() == 0 {
            return Ok(None);
        }
        let (good, bad) = (survey.peak(Class::Good), survey.peak(Class::Bad));
        if good == 0 {
            return Ok(None);
        }
        let slowest = |class| slowest(&survey, class);
        // If no key comes twice within a second, counts in a second say nothing about the pace.
        let slow = if good == 1 {
            slowest(Class::Good)?
        } else {
            None
        };
        let (count, unit) = slow.map_or((good.min(FASTEST), 's'), |count| (count, 'm'));
        let bad_count = match slow {
            Some(_) if bad == 1 => slowest(Class::Bad)?,
            _ => None,
        };
        let chosen = choose(&survey, per(count, 1, unit))?;
        let candidates = neighbours(chosen.candidate, count, unit);
        let trials = Trial::run_all(&survey.spool, survey.slots, &candidates)?;
        let reach = match bad {
            0 => Reach::NoneBad,
            _ if bad > good || bad_count.is_some_and(|bad| bad > count) => Reach::Below,
            _ => Reach::Above,
        };
        Ok(Some(Self {
            survey,
            chosen,
            trials,
            reach,
            bad_pace: bad_count.map(|count| per(count, 1, 'm')),
        }))
    }

    /// The recommended rate and burst, and their effect on the log's requests.
    #[must_use]
    pub fn chosen(&self) -> &Trial {
        &self.chosen
    }
}

/// The slowest whole number of requests a minute at which no request of this class waits too long.
///
/// The search starts from the most requests of one key in a minute. `None` if the result is 60 a
/// minute.
fn slowest(survey: &Surveyed, class: Class) -> io::Result<Option<u64>> {
    let most = most_in_a_minute(&survey.spool, survey.slots, class)?;
    let (mut too_slow, mut enough) = (u64::from(most).saturating_sub(1), 60u64);
    while enough.saturating_sub(too_slow) > 1 {
        let middle = u64::midpoint(too_slow, enough);
        let rate = per(middle, 1, 'm');
        let level = level(&survey.spool, survey.slots, rate, Some(class))?;
        if level / rate.per_second() > f64::from(LONGEST_WAIT) {
            too_slow = middle;
        } else {
            enough = middle;
        }
    }
    Ok((enough < 60).then_some(enough))
}

/// The smallest burst that rejects none of the good requests at this rate.
fn choose(survey: &Surveyed, rate: Rate) -> io::Result<Trial> {
    let (spool, slots) = (&survey.spool, survey.slots);
    let try_burst = |burst| Trial::run(spool, slots, Candidate { rate, burst });
    let rejects = |trial: &Trial| trial.rejected[Class::Good as usize] > 0;
    let mut too_small = whole(level(spool, slots, rate, Some(Class::Good))?);
    let first = try_burst(too_small)?;
    if !rejects(&first) {
        return Ok(first);
    }
    // Buckets may hold earlier requests when the good hours begin. The level of all requests is
    // certainly enough. Adding one covers the tolerance for floating point in `whole`.
    let all = whole(level(spool, slots, rate, None)?);
    let mut enough = try_burst(all.saturating_add(1))?;
    while enough.candidate.burst.saturating_sub(too_small) > 1 {
        let middle = try_burst(u32::midpoint(too_small, enough.candidate.burst))?;
        if rejects(&middle) {
            too_small = middle.candidate.burst;
        } else {
            enough = middle;
        }
    }
    Ok(enough)
}

/// Rounds a level up to whole requests, with a tolerance for floating point errors.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "levels are not negative, and the cast saturates"
)]
fn whole(level: f64) -> u32 {
    (level - 1e-6).ceil().max(0.0) as u32
}

/// A rate of `count / divisor` requests a second or minute.
pub(super) fn per(count: u64, divisor: u64, unit: char) -> Rate {
    let tenths = (count * 10).div_ceil(divisor).max(1);
    let text = match tenths % 10 {
        0 => format!("{}r/{unit}", tenths / 10),
        tenth if tenths < 100 => format!("{}.{tenth}r/{unit}", tenths / 10),
        _ => format!("{}r/{unit}", tenths.div_ceil(10)),
    };
    text.parse()
        .unwrap_or_else(|_| unreachable!("a whole number of tenths is a rate"))
}

/// Rates and bursts around the chosen ones, ordered by rate and then by burst.
fn neighbours(chosen: Candidate, count: u64, unit: char) -> Vec<Candidate> {
    let b = u64::from(chosen.burst);
    let mut rates: Vec<Rate> = vec![
        per(count, 2, unit),
        per(count * 3, 4, unit),
        chosen.rate,
        per((count * 3).min(2 * FASTEST), 2, unit),
        per((count * 2).min(FASTEST), 1, unit),
    ];
    rates.dedup();
    let mut bursts = vec![
        0,
        b / 4,
        b / 2,
        b * 3 / 4,
        b,
        b + b.div_ceil(2).max(1),
        (b * 2).max(2),
    ];
    let bursts = bursts
        .drain(..)
        .map(|burst| u32::try_from(burst).unwrap_or(u32::MAX));
    let mut bursts: Vec<u32> = bursts.collect();
    bursts.dedup();
    let of_rate = |rate| {
        let with = move |burst: &u32| Candidate {
            rate,
            burst: *burst,
        };
        bursts.iter().map(with).collect::<Vec<_>>()
    };
    rates.into_iter().flat_map(of_rate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_round() {
        let cases = [
            (50, 1, "50r/s"),
            (1, 2, "0.5r/s"),
            (3, 4, "0.8r/s"),
            (15, 2, "7.5r/s"),
            (51, 2, "26r/s"),
            (FASTEST, 1, "1000000r/s"),
        ];
        for (count, divisor, expected) in cases {
            assert_eq!(per(count, divisor, 's').to_string(), expected);
        }
        assert_eq!(per(5, 2, 'm').to_string(), "2.5r/m");
    }

    #[test]
    fn neighbours_lie_around_and_are_told_once() {
        for (rate, burst) in [(50u64, 4u32), (1, 0), (FASTEST, u32::MAX), (2, 1)] {
            let chosen = Candidate {
                rate: per(rate, 1, 's'),
                burst,
            };
            let all = neighbours(chosen, rate, 's');
            assert!(all.contains(&chosen), "{all:?}");
            let mut once = all.clone();
            once.dedup();
            assert_eq!(once.len(), all.len());
            let paces = all.iter().map(|it| (it.rate.per_second(), it.burst));
            assert!(
                paces.clone().is_sorted_by(|one, other| one < other),
                "{all:?}"
            );
        }
    }

    #[test]
    fn what_floating_point_adds_to_a_level_is_no_request() {
        let levels = [0.0, 4.0, 4.000_000_000_1, 4.1].map(whole);
        assert_eq!(levels, [0, 4, 4, 5]);
    }
}
