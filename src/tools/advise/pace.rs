//! The rate and burst that fit some keys.

use std::io;

use super::group::Counted;
use super::hours::Class;
use super::trial::{Candidate, Trial, level, most_in_a_minute};
use crate::limit::Rate;

/// The fastest rate that a file may have, in requests a second.
pub(super) const FASTEST: u64 = 1_000_000;

/// The longest allowed wait at a rate in requests a minute, in seconds.
///
/// It equals the longest wait at a rate that is the peak of a second. There, the full count may
/// come at the end of one second and again at the start of the next.
pub(super) const MAX_WAIT: u32 = 2;

/// The rate and burst that fit some keys.
pub(super) struct Pace {
    pub(super) chosen: Trial,
    /// The rate: so many requests in this unit.
    pub(super) count: u64,
    pub(super) unit: char,
}

/// The rate and burst that fit the keys of a group; `None` without requests in the good hours.
pub(super) fn recommend(group: &Counted) -> io::Result<Option<Pace>> {
    let good = group.peak(Class::Good);
    if good == 0 {
        return Ok(None);
    }
    // If no key comes twice within a second, counts in a second say nothing about the pace.
    let slow = if good == 1 {
        slowest(group, Class::Good)?
    } else {
        None
    };
    let (count, unit) = slow.map_or((good.min(FASTEST), 's'), |count| (count, 'm'));
    let chosen = choose(group, per(count, 1, unit))?;
    Ok(Some(Pace {
        chosen,
        count,
        unit,
    }))
}

/// The slowest whole number of requests a minute at which no request of this class waits too long.
///
/// The search starts from the most requests of one key in a minute. `None` if the result is 60 a
/// minute.
pub(super) fn slowest(group: &Counted, class: Class) -> io::Result<Option<u64>> {
    let most = most_in_a_minute(&group.spool, class)?;
    let (mut too_slow, mut enough) = (u64::from(most).saturating_sub(1), 60u64);
    while enough.saturating_sub(too_slow) > 1 {
        let middle = u64::midpoint(too_slow, enough);
        let rate = per(middle, 1, 'm');
        let level = level(&group.spool, rate, Some(class))?;
        if level / rate.per_second() > f64::from(MAX_WAIT) {
            too_slow = middle;
        } else {
            enough = middle;
        }
    }
    Ok((enough < 60).then_some(enough))
}

/// The smallest burst that rejects none of the good requests at this rate.
fn choose(group: &Counted, rate: Rate) -> io::Result<Trial> {
    let spool = &group.spool;
    let try_burst = |burst| Trial::run(spool, Candidate { rate, burst });
    let rejects = |trial: &Trial| trial.rejected[Class::Good as usize] > 0;
    let mut too_small = whole(level(spool, rate, Some(Class::Good))?);
    let first = try_burst(too_small)?;
    if !rejects(&first) {
        return Ok(first);
    }
    // Buckets may hold earlier requests when the good hours begin. The level of all requests is
    // certainly enough. Adding one covers the tolerance for floating point in `whole`.
    let all = whole(level(spool, rate, None)?);
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
    fn what_floating_point_adds_to_a_level_is_no_request() {
        let levels = [0.0, 4.0, 4.000_000_000_1, 4.1].map(whole);
        assert_eq!(levels, [0, 4, 4, 5]);
    }
}
