//! Sequential test of an objective: decides as soon as the responses suffice.
//!
//! "95 % below 400 ms" asks whether more than 5 % of responses are slower: a question about a share
//! of bad responses. Wald's sequential probability ratio test (1945) decides between two shares:
//! half of the allowed share, and the allowed share plus half. It needs the fewest responses of all
//! tests with its error bounds.
//!
//! The test assumes independent responses. Real ones are not: a queue or a garbage collection makes
//! bad responses in bunches. So the ratio is divided by the dispersion, which is the variance of
//! counts in blocks of a second divided by that of independent responses. 100 bad responses in one
//! bunch then weigh as much as one or two (quasi-likelihood: Wedderburn, Biometrika 61, 1974).
//! Blocks may depend on each other, too. So they are also merged by two and by four, and the
//! largest dispersion counts.

use crate::to_float;

/// Error probability: a good level is taken for a bad one, or a bad one for a good one.
const ERROR: f64 = 0.05;

/// Minimum number of blocks before the ratio can call a level bad.
const MIN_BLOCKS: usize = 5;

/// Minimum number of allowed bad responses before the measured share alone may decide.
const MIN_ALLOWED: f64 = 20.0;

/// Minimum number of groups from which the variance can be estimated.
const MIN_GROUPS: usize = 5;

/// Number of consecutive bad blocks that decide at once (a *bad spell*).
const SPELL_BLOCKS: usize = 3;

/// Minimum number of responses in a bad spell.
const SPELL_ANSWERS: f64 = 5.0;

/// Responses to the requests that were sent within a block.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sample {
    /// Number of responses.
    pub count: f64,
    /// Number of bad responses.
    pub bad: f64,
}

/// Verdict of the test on one condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TestVerdict {
    /// Fewer responses than allowed are bad.
    Good,
    /// More responses than allowed are bad.
    Bad,
    /// The responses do not suffice to decide.
    Undecided,
}

/// Sequential test of one condition.
#[derive(Clone, Copy, Debug)]
pub(super) struct SequentialTest {
    /// Share of responses that may be bad.
    allowed: f64,
    /// Logarithm of the ratio from which the level is bad, corrected for the number of conditions.
    bad_above: f64,
    /// Logarithm of the ratio up to which the level is good.
    good_below: f64,
}

impl SequentialTest {
    /// Returns the test of one of `conditions` conditions. `allowed` is the share that may be bad.
    ///
    /// With more conditions, each needs more evidence to be called bad.
    pub fn new(allowed: f64, conditions: usize) -> Self {
        Self {
            allowed,
            bad_above: ((1.0 - ERROR) * to_float(conditions as u64) / ERROR).ln(),
            good_below: (ERROR / (1.0 - ERROR)).ln(),
        }
    }

    /// Returns the verdict of the ratio.
    ///
    /// It is not bad before [`MIN_BLOCKS`]: fewer blocks do not show the dispersion.
    pub fn decide(&self, blocks: &[Sample]) -> TestVerdict {
        let ratio = self.log_ratio(blocks);
        if ratio >= self.bad_above && blocks.len() >= MIN_BLOCKS {
            TestVerdict::Bad
        } else if ratio <= self.good_below {
            TestVerdict::Good
        } else {
            TestVerdict::Undecided
        }
    }

    /// Returns the logarithm of the likelihood ratio of the bad share to the good one.
    fn log_ratio(&self, blocks: &[Sample]) -> f64 {
        let (good, bad) = self.shares();
        let all = sum(blocks);
        let ratio =
            all.bad * (bad / good).ln() + (all.count - all.bad) * ((1.0 - bad) / (1.0 - good)).ln();
        ratio / dispersion(blocks)
    }

    /// Returns the shares between which the test decides: half of the allowed share, and half more.
    fn shares(&self) -> (f64, f64) {
        let apart = self.allowed.min(1.0 - self.allowed) / 2.0;
        (self.allowed - apart, self.allowed + apart)
    }

    /// Returns whether the last blocks are a *bad spell*: so bad that no more blocks are needed.
    ///
    /// These are at least [`SPELL_BLOCKS`] blocks with at least [`SPELL_ANSWERS`] in all. In each,
    /// the bad share is at least the middle between the allowed share and 1, but from 0.5 to 0.75.
    pub fn is_bad_spell(&self, blocks: &[Sample]) -> bool {
        let limit = f64::midpoint(self.allowed, 1.0).clamp(0.5, 0.75);
        let (mut bad_blocks, mut answers) = (0, 0.0);
        for block in blocks.iter().rev() {
            if block.bad < limit * block.count {
                return false;
            }
            bad_blocks += 1;
            answers += block.count;
            if bad_blocks >= SPELL_BLOCKS && answers >= SPELL_ANSWERS {
                return true;
            }
        }
        false
    }

    /// Returns whether there are enough responses to decide by the measured share alone.
    pub fn has_enough(&self, blocks: &[Sample]) -> bool {
        sum(blocks).count * self.allowed.min(1.0 - self.allowed) >= MIN_ALLOWED
    }

    /// Returns the share of bad responses divided by the allowed one: 1 is the edge.
    pub fn closeness(&self, blocks: &[Sample]) -> f64 {
        let all = sum(blocks);
        all.bad / all.count.max(1.0) / self.allowed
    }
}

/// Returns the sum of the samples.
pub(super) fn sum(blocks: &[Sample]) -> Sample {
    let mut all = Sample::default();
    for block in blocks {
        all.count += block.count;
        all.bad += block.bad;
    }
    all
}

/// Returns how much more the bad responses vary between blocks than independent ones would.
///
/// It is Pearson's statistic per degree of freedom, at least 1: 1 for independent responses.
fn dispersion(blocks: &[Sample]) -> f64 {
    let all = sum(blocks);
    let share = all.bad / all.count.max(1.0);
    let spread = share * (1.0 - share);
    if spread <= 0.0 {
        return 1.0;
    }
    let by_group_size = |size: usize| {
        let groups = blocks.chunks_exact(size).map(sum);
        let (mut statistic, mut counted) = (0.0, 0.0);
        for group in groups.filter(|group| group.count > 0.0) {
            let off = group.bad - group.count * share;
            statistic += off * off / (group.count * spread);
            counted += 1.0;
        }
        // Per degree of freedom. From few groups the estimate is often much too low: the second
        // factor corrects it.
        statistic / f64::max(counted - 1.0, 1.0) * counted / f64::max(counted - 2.0, 1.0)
    };
    let sizes = [1, 2, 4].into_iter();
    let sizes = sizes.filter(|size| *size == 1 || blocks.len() / size >= MIN_GROUPS);
    sizes.map(by_group_size).fold(1.0, f64::max)
}

#[cfg(test)]
mod tests;
