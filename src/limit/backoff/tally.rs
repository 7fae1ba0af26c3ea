//! What an origin answered, by the keys that share its gate: what one key alone provokes is not the
//! origin's.

use std::collections::HashMap;

use crate::limit::Percent;

/// All answers, in the unit of a share: halves of a millionth, so that half of a `trip` is whole.
pub(super) const WHOLE: u64 = 2 * ALL;
const ALL: u64 = Percent::ALL.millionths() as u64;

/// Most keys that are told apart in a window. Each answer to any other key counts as a key of its own:
/// a key with many answers is among the first ones.
const MAX_KEYS: usize = 1024;

/// Answers of a window, by key.
#[derive(Debug, Default)]
pub(super) struct Tally {
    keys: HashMap<u64, KeyTally>,
    /// Requests without a key: they count as one.
    keyless: KeyTally,
    /// The keys above [`MAX_KEYS`].
    others: KeyTally,
}

/// Answers to the requests of a key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeyTally {
    pub answers: u64,
    /// Those that are trouble.
    pub trouble: u64,
    /// Those that are trouble and have a Retry-After.
    pub retries: u64,
    /// Those that are slow.
    pub slow: u64,
    /// Requests past `slow` that have no answer.
    pub overdue: u64,
}

impl KeyTally {
    /// Those that are slow, with the requests that are overdue, and all.
    pub fn slow(&self) -> (u64, u64) {
        (self.slow + self.overdue, self.answers + self.overdue)
    }
}

impl Tally {
    /// The answers to the requests of `key`; `None`: requests have no key.
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

    /// The only key with answers; `None`: there are several, or requests have no key.
    pub fn only_key(&self) -> Option<u64> {
        let mut keys = self.keys.iter().filter(|(_, it)| it.answers > 0);
        let key = keys.next().map(|(key, _)| *key);
        key.filter(|_| keys.next().is_none() && self.keyless.answers == 0)
    }

    /// The share of what is bad, of [`WHOLE`]: the mean of the shares of all keys that have any.
    ///
    /// `count`: what is bad of a key, and all. Nothing if only one of several keys has anything bad:
    /// then it is that key's.
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

    fn tally(keys: &[(Option<u64>, u64, u64)]) -> Tally {
        let mut tally = Tally::default();
        for (key, answers, trouble) in keys {
            let it = tally.of(*key);
            it.answers += answers;
            it.trouble += trouble;
        }
        tally
    }

    /// In percent.
    fn share(keys: &[(Option<u64>, u64, u64)]) -> u64 {
        tally(keys).share(|it| (it.trouble, it.answers)) * 100 / WHOLE
    }

    #[test]
    fn keys_count_and_not_answers() {
        let (one, two, three) = (Some(1), Some(2), Some(3));
        for (keys, percent) in [
            (&[][..], 0),
            (&[(None, 20, 5)], 25),
            // Only one key is active.
            (&[(one, 20, 5)], 25),
            // Only one of several has trouble.
            (&[(one, 1000, 1000), (two, 1, 0)], 0),
            (&[(one, 1000, 1000), (None, 1, 0)], 0),
            (&[(one, 1000, 1000), (two, 10, 1)], 55),
            (&[(one, 1000, 1000), (two, 4, 1), (three, 7, 0)], 41),
            (&[(one, 1, 1), (two, 1, 1), (three, 1000, 0)], 66),
        ] {
            assert_eq!(share(keys), percent, "{keys:?}");
        }
    }

    #[test]
    fn any_number_of_keys_takes_bounded_room() {
        let mut tally = tally(&[(Some(0), 500, 500)]);
        for key in 1..100_000 {
            tally.of(Some(key)).answers += 1;
        }
        assert_eq!(tally.keys.len(), MAX_KEYS);
        assert_eq!(
            tally.share(|it| (it.trouble, it.answers)),
            0,
            "it is one key's"
        );
        for key in 100_000..125_000 {
            let it = tally.of(Some(key));
            (it.answers, it.trouble) = (it.answers + 1, it.trouble + 1);
        }
        // A fifth of the keys.
        assert_eq!(tally.share(|it| (it.trouble, it.answers)) * 100 / WHOLE, 20);
        // One that is told apart stays so.
        tally.of(Some(0)).answers += 1;
        assert_eq!(tally.of(Some(0)).answers, 501);
    }
}
