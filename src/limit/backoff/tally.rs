//! Counts the answers of an origin by the keys that share its gate.
//!
//! Trouble that only one of several keys causes is a fault of that key, not of the origin.

use std::collections::HashMap;

use crate::Percent;

/// The share 1, in halves of a millionth, so that half of a `trip` is a whole number.
pub(super) const WHOLE: u64 = 2 * ALL;
const ALL: u64 = Percent::ALL.millionths() as u64;

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
    /// Answers to the keys beyond [`MAX_KEYS`].
    others: KeyTally,
}

/// Answers to the requests of a key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeyTally {
    pub answers: u64,
    /// Answers that are trouble.
    pub trouble: u64,
    /// Answers that are trouble and have `Retry-After`.
    pub retries: u64,
    /// Answers that are slow.
    pub slow: u64,
    /// Requests without an answer after `slow`.
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
    pub fn of(&mut self, key: Option<u64>) -> &mut KeyTally {
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
        let mut keys = self.keys.iter().filter(|(_, it)| it.answers > 0);
        let key = keys.next().map(|(key, _)| *key);
        key.filter(|_| keys.next().is_none() && self.keyless.answers == 0)
    }

    /// Returns the share of bad answers, from 0 to [`WHOLE`]: the mean of the shares of all keys.
    ///
    /// `count` returns the number of bad answers of a key, and of all its answers. Keys without
    /// answers are not in the mean. The share is 0 if only one of several keys has bad answers.
    pub fn share(&self, count: impl Fn(&KeyTally) -> (u64, u64)) -> u64 {
        let (bad, all) = count(&self.others);
        let of_others = [(all - bad, 0), (bad, WHOLE)];
        let keys = self.keys.values().chain([&self.keyless]).map(count);
        let keys = keys.filter(|(_, all)| *all > 0);
        let shares = keys.map(|(bad, all)| (1, bad * WHOLE / all));
        let (mut all, mut troubled, mut sum) = (0, 0, 0);
        for (count, share) in shares.chain(of_others) {
            all += count;
            troubled += if share > 0 { count } else { 0 };
            sum += count * share;
        }
        if troubled == 1 && all > 1 {
            return 0;
        }
        sum / all.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_for_any_number_of_keys() {
        let mut tally = Tally::default();
        let first = tally.of(Some(0));
        (first.answers, first.trouble) = (500, 500);
        for key in 1..100_000 {
            tally.of(Some(key)).answers += 1;
        }
        assert_eq!(tally.keys.len(), MAX_KEYS);
        let found = tally.share(|it| (it.trouble, it.answers));
        assert_eq!(found, 0, "it is one key's");
        for key in 100_000..125_000 {
            let it = tally.of(Some(key));
            (it.answers, it.trouble) = (it.answers + 1, it.trouble + 1);
        }
        // A fifth of the keys are in trouble.
        assert_eq!(tally.share(|it| (it.trouble, it.answers)) * 100 / WHOLE, 20);
        // A key that is counted separately stays separate.
        tally.of(Some(0)).answers += 1;
        assert_eq!(tally.of(Some(0)).answers, 501);
    }
}
