//! Answers, counted in blocks of a second by when their requests were sent.

use std::time::Duration;

use super::answer::{AnswerEvent, Part};
use super::evidence::Sample;
use super::objective::{Judgement, MAX_CONDITIONS, Objective};
use super::observed::{Observed, Waited};
use super::settings::Target;
use crate::Moment;

/// The least time of a block; it ends at the first tick after that.
const BLOCK: Duration = Duration::from_secs(1);

/// Most blocks that are kept, of four hours; a trial ends or starts anew before.
const MAX_BLOCKS: usize = 4 * 3600;

/// What requests at the gate waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Demand {
    /// For what is searched, all the time.
    Enough,
    /// All the time, but most of it for the other limit.
    HeldBack,
    /// Not all the time.
    Idle,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    start: Moment,
    end: Moment,
    departed: u64,
    /// Answers of which nothing more is heard: heads, and whole ones.
    ended: [u64; 2],
    good: [u32; MAX_CONDITIONS],
    bad: [u32; MAX_CONDITIONS],
    /// What requests waited for.
    waited: Waited,
    demand: Demand,
    /// Whether what was sent before may still be felt.
    pub is_settling: bool,
}

/// The blocks since a level was set.
#[derive(Debug)]
pub(super) struct Blocks {
    all: Vec<Block>,
    /// Departures before the block that is open.
    departed: u64,
    settled: Moment,
    /// How long a request may be without an answer.
    longest: Duration,
    parts: Vec<Option<Part>>,
}

impl Blocks {
    pub fn new(objective: &Objective, departed: u64, now: Moment) -> Self {
        let longest = objective.longest();
        let conditions = objective.conditions();
        let has_times = objective.has_times();
        let parts = conditions
            .iter()
            .map(|it| it.counts_missing(has_times).then_some(it.part()));
        Self {
            all: vec![Block::new(now, true)],
            departed,
            settled: now + longest.clamp(BLOCK, Duration::from_secs(10)),
            longest,
            parts: parts.collect(),
        }
    }

    /// How long a request may be without an answer.
    pub fn longest(&self) -> Duration {
        self.longest
    }

    pub fn is_full(&self) -> bool {
        self.all.len() >= MAX_BLOCKS
    }

    /// Whether the request was sent within these blocks.
    pub fn record(&mut self, objective: &Objective, sent: Moment, event: AnswerEvent) -> bool {
        let index = self.all.partition_point(|block| block.start <= sent);
        let Some(block) = index.checked_sub(1).and_then(|it| self.all.get_mut(it)) else {
            return false;
        };
        for (ended, part) in block.ended.iter_mut().zip([Part::Head, Part::Whole]) {
            *ended += u64::from(event.ends(part));
        }
        for (nth, condition) in objective.conditions().iter().enumerate() {
            match condition.judge(event) {
                Judgement::Good => block.good[nth] += 1,
                Judgement::Bad => block.bad[nth] += 1,
                Judgement::BadAfterAll => {
                    block.good[nth] = block.good[nth].saturating_sub(1);
                    block.bad[nth] += 1;
                }
                Judgement::Nothing => {}
            }
        }
        true
    }

    /// Ends the open block if its time is over.
    pub fn tick(&mut self, target: Target, seen: &Observed, now: Moment) {
        let is_settling = now < self.settled;
        let is_full = self.is_full();
        let Some(open) = self.all.last_mut() else {
            return;
        };
        if !seen.has_waited {
            open.demand = Demand::Idle;
        }
        open.waited.add(seen.waited);
        if now.since(open.start) < BLOCK || is_full {
            return;
        }
        open.end = now;
        open.departed = seen.departed.saturating_sub(self.departed);
        if open.demand == Demand::Enough && open.waited.is_held_back(target) {
            open.demand = Demand::HeldBack;
        }
        self.departed = seen.departed;
        self.all.push(Block::new(now, is_settling));
    }

    /// How many blocks are closed: an answer that is still to come is a slow one.
    pub fn closed(&self, now: Moment) -> usize {
        let ended = self.all.len().saturating_sub(1);
        let old = self.all[..ended].partition_point(|it| now.since(it.end) >= self.longest);
        // A younger one is closed, too, if all its answers have come.
        let is_whole = |block: &&Block| {
            let of = |part: &Option<Part>| part.map_or(block.departed, |it| block.ended[index(it)]);
            self.parts.iter().all(|part| of(part) >= block.departed)
        };
        old + self.all[old..ended].iter().take_while(is_whole).count()
    }

    /// The closed blocks that are `wanted`, for the condition with this number.
    pub fn samples(
        &self,
        nth: usize,
        closed: usize,
        wanted: impl Fn(&Block) -> bool,
    ) -> Vec<Sample> {
        let part = self.parts.get(nth).copied().flatten();
        let (mut unanswered, mut samples) = (0_i64, Vec::with_capacity(closed));
        for block in &self.all[..closed] {
            let (good, mut bad) = (f64::from(block.good[nth]), f64::from(block.bad[nth]));
            if let Some(part) = part {
                // A request may be counted in the block beside that of its answer.
                let before = unanswered.max(0);
                unanswered += signed(block.departed) - signed(block.ended[index(part)]);
                let more = u32::try_from(unanswered.max(0) - before).unwrap_or(0);
                bad += f64::from(more);
            }
            if wanted(block) {
                samples.push(Sample {
                    count: good + bad,
                    bad,
                });
            }
        }
        samples
    }

    /// The time of the closed blocks that count for a level that is good.
    pub fn busy(&self, closed: usize) -> Duration {
        let counted = self.all[..closed].iter();
        let counted = counted.filter(|it| it.is_proof());
        counted.map(Block::took).sum()
    }

    /// The time of all blocks in which requests waited for the other limit.
    pub fn held_back(&self) -> Duration {
        let held_back = self.all.iter().filter(|it| it.demand == Demand::HeldBack);
        held_back.map(Block::took).sum()
    }

    /// Whether the other limit held requests back in the last block that ended.
    pub fn is_held_back(&self) -> bool {
        self.all
            .iter()
            .rev()
            .nth(1)
            .is_some_and(|it| it.demand == Demand::HeldBack)
    }

    /// The time of all blocks in which requests did not wait all the time, or for the other limit.
    pub fn idle(&self) -> Duration {
        let idle = self.all.iter().filter(|it| it.demand != Demand::Enough);
        idle.map(Block::took).sum()
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
            demand: Demand::Enough,
            is_settling,
        }
    }

    /// Whether it counts for a level that is good.
    pub fn is_proof(&self) -> bool {
        self.demand == Demand::Enough && !self.is_settling
    }

    fn took(&self) -> Duration {
        self.end.since(self.start)
    }
}

fn index(part: Part) -> usize {
    match part {
        Part::Head => 0,
        Part::Whole => 1,
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
