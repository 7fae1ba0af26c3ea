//! Whether more answers are bad than an objective allows, decided as soon as the answers tell.
//!
//! "95 % below 400 ms" asks whether more than 5 % of answers are slower: a question about a share of
//! bad answers. Wald's sequential probability ratio test (1945) decides between a share of half of
//! what is allowed and one of half more, with the fewest answers of all tests with its error bounds.
//!
//! It takes answers as independent. They are not: a queue or a collection of garbage makes bad
//! answers in bunches. So the ratio is divided by the dispersion, the variance of counts in blocks of
//! a second against that of independent answers: 100 bad answers in one bunch then weigh as one or two
//! (quasi-likelihood: Wedderburn, Biometrika 61, 1974). Blocks may depend on each
//! other, too, so they are also put together by two and by four, and the largest dispersion counts.

use crate::to_float;

/// How often a good level may be taken for a bad one, and the reverse.
const ERROR: f64 = 0.05;

/// Nothing is bad by its ratio before so many blocks.
const MIN_BLOCKS: usize = 5;

/// So many bad answers must be allowed before the figures alone decide.
const MIN_ALLOWED: f64 = 20.0;

/// Fewer blocks tell nothing about the variance.
const MIN_GROUPS: usize = 5;

/// The answers to the requests that were sent within a block of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sample {
    pub count: f64,
    pub bad: f64,
}

/// What the evidence says about one condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaning {
    Good,
    Bad,
    Undecided,
}

/// The sequential test of one condition.
#[derive(Clone, Copy, Debug)]
pub(super) struct SequentialTest {
    allowed: f64,
    /// Logarithm of the odds at which it is taken for bad; as many tests as conditions may err.
    bad_above: f64,
    good_below: f64,
}

impl SequentialTest {
    /// A share of `allowed` bad answers is the limit; `conditions` of such tests are made at once.
    pub fn new(allowed: f64, conditions: usize) -> Self {
        Self {
            allowed,
            bad_above: ((1.0 - ERROR) * to_float(conditions as u64) / ERROR).ln(),
            good_below: (ERROR / (1.0 - ERROR)).ln(),
        }
    }

    /// What the ratio says. Bad not before [`MIN_BLOCKS`]: fewer tell too little of the dispersion.
    pub fn decide(&self, blocks: &[Sample]) -> Leaning {
        let ratio = self.log_ratio(blocks);
        if ratio >= self.bad_above && blocks.len() >= MIN_BLOCKS {
            Leaning::Bad
        } else if ratio <= self.good_below {
            Leaning::Good
        } else {
            Leaning::Undecided
        }
    }

    /// Logarithm of the likelihood of the bad share against that of the good one.
    fn log_ratio(&self, blocks: &[Sample]) -> f64 {
        let (good, bad) = self.shares();
        let all = sum(blocks);
        let ratio =
            all.bad * (bad / good).ln() + (all.count - all.bad) * ((1.0 - bad) / (1.0 - good)).ln();
        ratio / dispersion(blocks)
    }

    /// The shares between which it decides: half of what is allowed, and half more.
    fn shares(&self) -> (f64, f64) {
        let apart = self.allowed.min(1.0 - self.allowed) / 2.0;
        (self.allowed - apart, self.allowed + apart)
    }

    /// Whether the last blocks are so bad that nobody waits for more: each of at least three, with at
    /// least five answers, halfway between what is allowed and all.
    pub fn is_spell(&self, blocks: &[Sample]) -> bool {
        let limit = f64::midpoint(self.allowed, 1.0).clamp(0.5, 0.75);
        let (mut seen, mut answers) = (0, 0.0);
        for block in blocks.iter().rev() {
            if block.bad < limit * block.count {
                return false;
            }
            seen += 1;
            answers += block.count;
            if seen >= 3 && answers >= 5.0 {
                return true;
            }
        }
        false
    }

    /// Whether there are enough answers to decide by their figures.
    pub fn has_enough(&self, blocks: &[Sample]) -> bool {
        sum(blocks).count * self.allowed.min(1.0 - self.allowed) >= MIN_ALLOWED
    }

    /// The share of bad answers against the allowed one: 1 is the edge.
    pub fn closeness(&self, blocks: &[Sample]) -> f64 {
        let all = sum(blocks);
        all.bad / all.count.max(1.0) / self.allowed
    }
}

pub(super) fn sum(blocks: &[Sample]) -> Sample {
    let mut all = Sample::default();
    for block in blocks {
        all.count += block.count;
        all.bad += block.bad;
    }
    all
}

/// Pearson's statistic for each degree of freedom: 1 if answers are independent, at least 1.
fn dispersion(blocks: &[Sample]) -> f64 {
    let all = sum(blocks);
    let share = all.bad / all.count.max(1.0);
    let spread = share * (1.0 - share);
    if spread <= 0.0 {
        return 1.0;
    }
    let of = |size: usize| {
        let groups: Vec<Sample> = blocks.chunks_exact(size).map(sum).collect();
        let (mut statistic, mut counted) = (0.0, 0.0);
        for group in groups.iter().filter(|it| it.count > 0.0) {
            let off = group.bad - group.count * share;
            statistic += off * off / (group.count * spread);
            counted += 1.0;
        }
        // From few groups the estimate is often much too low.
        statistic / f64::max(counted - 1.0, 1.0) * counted / f64::max(counted - 2.0, 1.0)
    };
    let sizes = [1, 2, 4].into_iter();
    let sizes = sizes.filter(|size| *size == 1 || blocks.len() / size >= MIN_GROUPS);
    sizes.map(of).fold(1.0, f64::max)
}

#[cfg(test)]
mod tests;
