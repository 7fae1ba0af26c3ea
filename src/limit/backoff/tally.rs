//! Tally: counts the answers of an origin by the keys that share its gate.
//!
//! *Trouble* is an answer that counts as a failure. Trouble that only one of several keys causes is
//! a fault of that key, not of the origin. A key is identified by its hash.

use std::collections::HashMap;

use crate::Percent;

/// The share 1: shares of answers, of the rate and of the limit in flight are in millionths.
pub(super) const WHOLE: u64 = Percent::ALL.millionths() as u64;

/// Upper bound of the keys that are counted separately in a window.
///
/// Each answer to a further key counts as a key of its own. A key with many answers is among the
/// first ones.
const MAX_KEYS: usize = 1024;

/// Answers of a window, by key.
#[derive(Debug, Default)]
pub(super) struct Tally {
    keys: HashMap<u64, KeyTally>,
    /// Answers to requests without a key. They count as one key.
    keyless: KeyTally,
    /// Answers to the requests of all keys beyond [`MAX_KEYS`].
    others: KeyTally,
}

/// Numbers of answers to the requests of a key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeyTally {
    pub answers: u64,
    /// Answers that are trouble.
    pub trouble: u64,
    /// Answers that are trouble and have `Retry-After`.
    pub retries: u64,
    /// Answers that are slow.
    pub slow: u64,
    /// Requests without an answer after `slow`, the time from which an answer is slow.
    pub overdue: u64,
}

impl KeyTally {
    /// Returns the number of slow answers and of all answers. Overdue requests are in both.
    pub fn slow(&self) -> (u64, u64) {
        (self.slow + self.overdue, self.answers + self.overdue)
    }
}

impl Tally {
    /// Returns the counts of `key`; `None`: of requests without a key.
    pub fn counts(&mut self, key: Option<u64>) -> &mut KeyTally {
        let Some(key) = key else {
            return &mut self.keyless;
        };
        if self.keys.len() < MAX_KEYS || self.keys.contains_key(&key) {
            self.keys.entry(key).or_default()
        } else {
            &mut self.others
        }
    }

    /// Returns the only key with answers.
    ///
    /// `None`: there is no such key, several keys have answers, or requests have no key.
    pub fn only_key(&self) -> Option<u64> {
        let mut keys = self.keys.iter().filter(|(_, tally)| tally.answers > 0);
        let first = keys.next().map(|(key, _)| *key);
        first.filter(|_| keys.next().is_none() && self.keyless.answers == 0)
    }

    /// Returns the share of bad answers, from 0 to [`WHOLE`]: the mean of the shares of all keys.
    ///
    /// `count` returns the number of bad answers of a key, and of all its answers. Keys without
    /// answers are not in the mean. The share is 0 if only one of several keys has bad answers.
    pub fn share(&self, count: impl Fn(&KeyTally) -> (u64, u64)) -> u64 {
        // Each answer in `others` counts as a key with this answer alone: its share is 0 or 1.
        let (mut troubled_keys, mut keys) = count(&self.others);
        let mut sum = troubled_keys * WHOLE;
        for key in self.keys.values().chain([&self.keyless]) {
            let (bad, all) = count(key);
            if let Some(share) = (bad * WHOLE).checked_div(all) {
                keys += 1;
                troubled_keys += u64::from(bad > 0);
                sum += share;
            }
        }
        if troubled_keys == 1 && keys > 1 {
            return 0;
        }
        sum / keys.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_for_any_number_of_keys() {
        let mut tally = Tally::default();
        let first = tally.counts(Some(0));
        (first.answers, first.trouble) = (500, 500);
        for key in 1..100_000 {
            tally.counts(Some(key)).answers += 1;
        }
        assert_eq!(tally.keys.len(), MAX_KEYS);
        let found = tally.share(|it| (it.trouble, it.answers));
        assert_eq!(found, 0, "it is one key's");
        for key in 100_000..125_000 {
            let counts = tally.counts(Some(key));
            (counts.answers, counts.trouble) = (counts.answers + 1, counts.trouble + 1);
        }
        // A fifth of the keys are in trouble.
        assert_eq!(tally.share(|it| (it.trouble, it.answers)) * 100 / WHOLE, 20);
        // A key that is counted separately stays separate.
        tally.counts(Some(0)).answers += 1;
        assert_eq!(tally.counts(Some(0)).answers, 501);
    }
}
