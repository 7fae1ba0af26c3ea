use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::hours::Class;
use super::spool::Spool;
use crate::limit::{Bucket, Cost, Delay, Limit, Moment, Rate, Verdict};
use crate::replay::Spread;
use crate::tools::shown::share;

/// Maximum number of replays at once: each replay has a bucket for every key.
const AT_ONCE: usize = 4;

/// A rate and a burst to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The rate of each key.
    pub rate: Rate,
    /// How many requests of a key may wait.
    pub burst: u32,
}

/// The outcome of the log's requests under one rate and burst.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The rate and burst that were tried.
    pub candidate: Candidate,
    /// Requests in good, bad and other hours. The following counts have the same order.
    pub requests: [u64; 3],
    /// Requests that would have waited.
    pub delayed: [u64; 3],
    /// Requests that would have been rejected.
    pub rejected: [u64; 3],
    waits: Spread,
    /// The levels at which requests were accepted, in thousandths of a request.
    levels: Spread,
}

/// One bucket for each slot, charged by one replay of the log.
struct Buckets {
    of_slots: Vec<Bucket>,
    rate: Rate,
    limit: Limit,
}

impl Buckets {
    fn new(spool: &Spool, candidate: Candidate) -> Self {
        Self {
            of_slots: vec![Bucket::new(); spool.slots],
            rate: candidate.rate,
            limit: Limit {
                burst: candidate.burst,
                ..Limit::unlimited(Delay::Above(0), Cost::ONE)
            },
        }
    }

    fn decide(&mut self, slot: u32, is_first: bool, now: Moment) -> Option<Verdict> {
        let bucket = self.of_slots.get_mut(slot as usize)?;
        if is_first {
            *bucket = Bucket::new();
        }
        Some(bucket.decide(self.rate, self.limit, now))
    }
}

impl Trial {
    /// Replays the log through the gateway's own decision function.
    pub(super) fn run(spool: &Spool, candidate: Candidate) -> io::Result<Self> {
        let mut buckets = Buckets::new(spool, candidate);
        let mut trial = Self {
            candidate,
            requests: [0; 3],
            delayed: [0; 3],
            rejected: [0; 3],
            waits: Spread::default(),
            levels: Spread::default(),
        };
        spool.each(|event| {
            let now = Moment::from_nanos(event.time);
            let class = event.class as usize;
            trial.requests[class] += 1;
            let verdict = buckets.decide(event.slot, event.is_first, now);
            if let Some(Verdict::Pass { excess } | Verdict::Delay { excess, .. }) = verdict {
                trial.levels.add(thousandths(excess.requests()));
            }
            match verdict {
                Some(Verdict::Delay { until, .. }) => {
                    trial.delayed[class] += 1;
                    let wait = u64::try_from(until.since(now).as_nanos()).unwrap_or(u64::MAX);
                    trial.waits.add(wait);
                }
                Some(Verdict::Reject(_)) => trial.rejected[class] += 1,
                Some(Verdict::Pass { .. }) | None => {}
            }
        })?;
        Ok(trial)
    }

    /// Replays the log under each of `candidates`, several at once.
    pub(super) fn run_all(spool: &Spool, candidates: &[Candidate]) -> io::Result<Vec<Self>> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let workers = cores.min(AT_ONCE).min(candidates.len());
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(candidate) = candidates.get(index) else {
                    return Ok(done);
                };
                done.push((index, Self::run(spool, *candidate)?));
            }
        };
        let parts: Vec<io::Result<Vec<(usize, Self)>>> = thread::scope(|scope| {
            let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            let joined = workers.into_iter().map(thread::ScopedJoinHandle::join);
            joined
                .map(|part| part.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        let mut all = Vec::with_capacity(candidates.len());
        for part in parts {
            all.extend(part?);
        }
        all.sort_by_key(|(index, _)| *index);
        Ok(all.into_iter().map(|(_, trial)| trial).collect())
    }

    /// The sum over all hours.
    #[must_use]
    pub fn all(counts: &[u64; 3]) -> u64 {
        counts.iter().sum()
    }

    /// The share of requests that would have waited, from 0 to 1.
    #[must_use]
    pub fn share_delayed(&self) -> f64 {
        share(Self::all(&self.delayed), Self::all(&self.requests))
    }

    /// The share of requests that would have been rejected, from 0 to 1.
    #[must_use]
    pub fn share_rejected(&self) -> f64 {
        share(Self::all(&self.rejected), Self::all(&self.requests))
    }

    /// The smallest `delay` of the limit with which no more than this share of requests wait.
    ///
    /// A request waits if it is accepted at a level above it. What is rejected stays the same.
    #[must_use]
    pub fn delay_for(&self, share: f64) -> u32 {
        // Levels are kept to a thousandth.
        let level = self.levels.at(1.0 - share);
        let level = (level - level / 1000).div_ceil(1000);
        u32::try_from(level).unwrap_or(u32::MAX)
    }

    /// A quantile of the waits of delayed requests, accurate to a thousandth.
    #[must_use]
    pub fn wait(&self, share: f64) -> Duration {
        Duration::from_nanos(self.waits.at(share))
    }
}

/// A level in thousandths of a request, rounded.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "levels are not negative, and the cast saturates"
)]
fn thousandths(level: f64) -> u64 {
    (level * 1000.0).round().max(0.0) as u64
}

/// The highest level that requests of one class, or of all, would reach if none were rejected.
pub(super) fn level(spool: &Spool, rate: Rate, of: Option<Class>) -> io::Result<f64> {
    let candidate = Candidate {
        rate,
        burst: u32::MAX,
    };
    let mut buckets = Buckets::new(spool, candidate);
    let mut highest: f64 = 0.0;
    // A request that is left out may be the first of its key.
    let mut unused = vec![false; spool.slots];
    spool.each(|event| {
        let Some(is_unused) = unused.get_mut(event.slot as usize) else {
            return;
        };
        *is_unused |= event.is_first;
        if of.is_some_and(|class| event.class != class) {
            return;
        }
        let is_first = std::mem::take(is_unused);
        let now = Moment::from_nanos(event.time);
        if let Some(Verdict::Pass { excess } | Verdict::Delay { excess, .. }) =
            buckets.decide(event.slot, is_first, now)
        {
            highest = highest.max(excess.requests());
        }
    })?;
    Ok(highest)
}

/// How many requests of the key in each slot would be rejected under a rate and burst.
pub(super) fn rejections(spool: &Spool, candidate: Candidate) -> io::Result<Vec<u64>> {
    let mut buckets = Buckets::new(spool, candidate);
    let mut rejected = vec![0; spool.slots];
    spool.each(|event| {
        let Some(count) = rejected.get_mut(event.slot as usize) else {
            return;
        };
        if event.is_first {
            *count = 0;
        }
        let now = Moment::from_nanos(event.time);
        let verdict = buckets.decide(event.slot, event.is_first, now);
        *count += u64::from(matches!(verdict, Some(Verdict::Reject(_))));
    })?;
    Ok(rejected)
}

/// The most requests of one key in a clock minute, in hours of this class.
pub(super) fn most_in_a_minute(spool: &Spool, class: Class) -> io::Result<u32> {
    let mut counts = vec![(0, 0); spool.slots];
    let mut most = 0;
    spool.each(|event| {
        let Some((minute, count)) = counts.get_mut(event.slot as usize) else {
            return;
        };
        let now = event.time / 60_000_000_000;
        if event.is_first || *minute != now {
            (*minute, *count) = (now, 0);
        }
        *count += u32::from(event.class == class);
        most = most.max(*count);
    })?;
    Ok(most)
}
