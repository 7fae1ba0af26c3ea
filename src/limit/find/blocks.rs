//! Blocks: counts of responses by the second in which their request was sent.
//!
//! An experiment tries a *level* (a rate, or a number of permits). An objective has *conditions*,
//! such as `p95<400ms`. A response is good or bad for each of them. A block is *closed* when no
//! more responses to its requests are expected. It *counts towards a good level* only if requests
//! waited at the gate all the time for the limit that is searched: otherwise the level was not
//! reached.

use std::time::Duration;

use super::answer::{AnswerEvent, Part};
use super::evidence::Sample;
use super::objective::{MAX_CONDITIONS, Objective, ResponseVerdict};
use super::observed::{Observed, Waited};
use super::settings::Target;
use crate::Moment;

/// Minimum duration of a block; it ends at the first tick after that.
const BLOCK: Duration = Duration::from_secs(1);

/// Upper bound of the blocks that are kept: four hours. A trial takes no longer.
const MAX_BLOCKS: usize = 4 * 3600;

/// Upper bound of the *settling* time, in which requests of the earlier level still have an effect.
const MAX_SETTLING: Duration = Duration::from_secs(10);

/// Demand at the gate during a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockDemand {
    /// Requests waited all the time, for the limit that is searched.
    Enough,
    /// Requests waited all the time, but mostly for the other limit.
    HeldBack,
    /// Requests did not wait all the time.
    Idle,
}

/// Counts of the requests that were sent in about a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    start: Moment,
    end: Moment,
    /// Number of requests that were sent.
    departed: u64,
    /// Number of requests whose head has arrived or is not expected any more, and the same for the
    /// whole response. Indexed by [`Part`].
    ended: [u64; 2],
    /// Number of good responses, by condition.
    good: [u32; MAX_CONDITIONS],
    /// Number of bad responses, by condition.
    bad: [u32; MAX_CONDITIONS],
    /// Duration that requests waited, by limit.
    waited: Waited,
    demand: BlockDemand,
    /// Whether requests that were sent at the earlier level may still have an effect.
    pub is_settling: bool,
}

/// Blocks since a level was set.
#[derive(Debug)]
pub(super) struct Blocks {
    /// The last one is open: its second is not over.
    all: Vec<Block>,
    /// Departures before the open block.
    departed: u64,
    /// Instant from which requests of the earlier level have no effect.
    settled: Moment,
    /// Duration after which a request without a response counts as slow.
    pub longest: Duration,
    /// Part of the response that each condition needs. `None`: for this condition, a missing
    /// response does not count.
    parts: Vec<Option<Part>>,
}

impl Blocks {
    pub fn new(objective: &Objective, departed: u64, now: Moment) -> Self {
        let (longest, has_times) = (objective.longest(), objective.has_times());
        let conditions = objective.conditions().iter();
        let parts = conditions.map(|it| it.needed_part(has_times));
        Self {
            all: vec![Block::new(now, true)],
            departed,
            settled: now + longest.clamp(BLOCK, MAX_SETTLING),
            longest,
            parts: parts.collect(),
        }
    }

    /// Returns whether there are [`MAX_BLOCKS`]. Then the last block stays open.
    pub fn is_full(&self) -> bool {
        self.all.len() >= MAX_BLOCKS
    }

    /// Records an event of a request. Returns whether the request was sent within these blocks.
    pub fn record(&mut self, objective: &Objective, sent: Moment, event: AnswerEvent) -> bool {
        let index = self.all.partition_point(|block| block.start <= sent);
        let Some(block) = index.checked_sub(1).and_then(|it| self.all.get_mut(it)) else {
            return false;
        };
        for part in [Part::Head, Part::Whole] {
            block.ended[part as usize] += u64::from(event.ends(part));
        }
        for (nth, condition) in objective.conditions().iter().enumerate() {
            match condition.verdict(event) {
                ResponseVerdict::Good => block.good[nth] += 1,
                ResponseVerdict::Bad => block.bad[nth] += 1,
                ResponseVerdict::TurnedBad => {
                    block.good[nth] = block.good[nth].saturating_sub(1);
                    block.bad[nth] += 1;
                }
                ResponseVerdict::Nothing => {}
            }
        }
        true
    }

    /// Updates the open block, and closes it if its duration is over.
    pub fn tick(&mut self, target: Target, seen: &Observed, now: Moment) {
        let is_settling = now < self.settled;
        let is_full = self.is_full();
        let Some(open) = self.all.last_mut() else {
            return;
        };
        if !seen.has_waited {
            open.demand = BlockDemand::Idle;
        }
        open.waited.add(seen.waited);
        if now.since(open.start) < BLOCK || is_full {
            return;
        }
        open.end = now;
        open.departed = seen.departed.saturating_sub(self.departed);
        if open.demand == BlockDemand::Enough && open.waited.is_held_back(target) {
            open.demand = BlockDemand::HeldBack;
        }
        self.departed = seen.departed;
        self.all.push(Block::new(now, is_settling));
    }

    /// Returns the number of closed blocks. A response that is still missing there counts as slow.
    pub fn closed(&self, now: Moment) -> usize {
        let ended = self.all.len().saturating_sub(1);
        let old = self.all[..ended].partition_point(|it| now.since(it.end) >= self.longest);
        // A younger block is closed, too, if all its responses have arrived.
        let is_whole = |block: &&Block| {
            let mut needed = self.parts.iter().flatten();
            needed.all(|part| block.ended[*part as usize] >= block.departed)
        };
        old + self.all[old..ended].iter().take_while(is_whole).count()
    }

    /// Returns the samples for the condition `nth`: one for each closed block that `accepts`
    /// accepts.
    ///
    /// If the condition needs a response, a missing one counts as bad.
    pub fn samples(
        &self,
        nth: usize,
        closed: usize,
        accepts: impl Fn(&Block) -> bool,
    ) -> Vec<Sample> {
        let part = self.parts.get(nth).copied().flatten();
        // Requests without a response so far. Negative for a while, because a request and its
        // response may be counted in neighboring blocks.
        let (mut unanswered, mut samples) = (0_i64, Vec::with_capacity(closed));
        for block in &self.all[..closed] {
            let (good, mut bad) = (f64::from(block.good[nth]), f64::from(block.bad[nth]));
            if let Some(part) = part {
                let before = unanswered.max(0);
                unanswered += signed(block.departed) - signed(block.ended[part as usize]);
                let more = u32::try_from(unanswered.max(0) - before).unwrap_or(0);
                bad += f64::from(more);
            }
            if accepts(block) {
                samples.push(Sample {
                    count: good + bad,
                    bad,
                });
            }
        }
        samples
    }

    /// Returns the total duration of the closed blocks that count towards a good level.
    pub fn proven(&self, closed: usize) -> Duration {
        duration(&self.all[..closed], Block::is_proof)
    }

    /// Returns the total duration of the blocks in which requests waited for the other limit.
    pub fn held_back(&self) -> Duration {
        duration(&self.all, |it| it.demand == BlockDemand::HeldBack)
    }

    /// Returns whether requests waited for the other limit in the last closed block.
    pub fn is_held_back(&self) -> bool {
        // The last one is open.
        let last = self.all.iter().nth_back(1);
        last.is_some_and(|it| it.demand == BlockDemand::HeldBack)
    }

    /// Returns the total duration of the blocks without enough demand for the searched limit.
    pub fn idle(&self) -> Duration {
        duration(&self.all, |it| it.demand != BlockDemand::Enough)
    }
}

impl Block {
    fn new(start: Moment, is_settling: bool) -> Self {
        Self {
            start,
            end: start,
            departed: 0,
            ended: [0; 2],
            good: [0; MAX_CONDITIONS],
            bad: [0; MAX_CONDITIONS],
            waited: Waited::default(),
            demand: BlockDemand::Enough,
            is_settling,
        }
    }

    /// Returns whether the block counts towards a good level.
    pub fn is_proof(&self) -> bool {
        self.demand == BlockDemand::Enough && !self.is_settling
    }
}

/// Returns the total duration of the blocks that `counts` accepts.
fn duration(blocks: &[Block], counts: impl Fn(&Block) -> bool) -> Duration {
    let counted = blocks.iter().filter(|it| counts(it));
    counted.map(|it| it.end.since(it.start)).sum()
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
