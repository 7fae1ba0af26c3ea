//! Answer of a script about a key, and the verdict that follows from it.

use config::redis::{ticks, whole_micros};
use limit::{
    Account, Algorithm, Allowance, Bucket, Cost, Delay, Excess, FixedWindow, Limit, Meter, Moment,
    Rate, Reason, Refusal, SlidingWindowCounter, Verdict,
};

use super::reply::{Done, EntryReply};
use super::stored_state::StoredState;
use super::{Error, Join, StoreRate};

/// Answer of the store to a [`Join`]. All instants are on Redis's clock.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreAnswer {
    /// Decision on the request.
    pub verdict: Verdict,
    /// Time of the decision. Relates Redis's clock to the caller's.
    pub now: Moment,
    /// Charge; `None` if the request was rejected.
    pub charge: Option<Charge>,
    /// Rate used for the decision.
    pub in_force: InForce,
    /// Instant until which the charged slot may be used by another request under the same limit.
    ///
    /// `None` if the request was rejected, and for `sliding_window_log`.
    pub usable_until: Option<Moment>,
    pub(super) state: StoredState,
}

impl StoreAnswer {
    /// Returns the key's state after the decision, converted to another clock.
    ///
    /// The other clock showed `at` when Redis's clock showed [`now`](Self::now).
    pub fn account(&self, at: Moment) -> Account {
        self.state.account(self.in_force.rate, self.now, at)
    }
}

/// Charge of a request in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// Number of its first slot on the schedule; 0 unless the algorithm is `leaky_bucket`.
    pub(super) slot: u64,
    /// Time of the charge.
    pub(super) at: Moment,
    /// Number of consecutive slots that it took.
    pub(super) cost: Cost,
}

impl Charge {
    /// Returns the number of its first slot on the schedule.
    #[cfg(test)]
    pub(crate) fn slot(&self) -> u64 {
        self.slot
    }

    /// Returns the charged cost.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// Returns the part with `cost` slots from index `from` on.
    pub fn part(&self, from: u32, cost: Cost) -> Self {
        Self {
            slot: self.slot + u64::from(from),
            cost,
            ..*self
        }
    }

    /// Returns the part above `cost`, which is the last slots; `None` if there is none.
    pub fn too_much(&self, cost: Cost) -> Option<Self> {
        let less = self.cost.above(cost)?;
        Some(self.part(cost.get(), less))
    }

    /// Returns the same number of slots, moved up by `by`.
    pub fn moved_up(&self, by: Cost) -> Self {
        Self {
            slot: self.slot.saturating_sub(by.get().into()),
            ..*self
        }
    }

    /// Returns whether its slots are behind those of another charge.
    pub fn is_behind(&self, other: &Self) -> bool {
        self.slot > other.slot
    }

    /// Returns whether its slots directly follow those of another charge.
    pub fn follows(&self, other: &Self) -> bool {
        self.slot == other.slot + u64::from(other.cost.get())
    }
}

/// Rate at which a key is paced, whatever the rate in the gateway's own file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InForce {
    /// Rate in force.
    pub rate: Rate,
    /// Whether it differs from the rate in the asking gateway's file.
    pub differs: bool,
    /// Time at which it took effect, if it was changed while the key was known.
    pub since: Option<Moment>,
}

/// Answer of the store to a [`Retune`](super::Retune). All instants are on Redis's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retuned {
    /// Time of the retune.
    pub now: Moment,
    /// Rate that the key now has.
    pub in_force: InForce,
}

/// Converts Redis's microseconds to an instant.
fn moment(micros: u64) -> Moment {
    Moment::from_nanos(micros.saturating_mul(1000))
}

/// Converts a count, capped at `u32::MAX`.
fn small(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Returns the rate in force by a reply: another gateway's rate, or that of `pace`.
pub(super) fn in_force(pace: &StoreRate, done: &Done) -> Result<InForce, Error> {
    let rate = match &done.other_rate {
        None => pace.rate(),
        Some(written) => written.parse().map_err(|_| Error::InvalidReply)?,
    };
    Ok(InForce {
        rate,
        differs: done.other_rate.is_some(),
        since: done.since,
    })
}

/// Returns the answer to one of several equal joins: the one behind `nth` others.
pub(super) fn answer(
    join: &Join<'_>,
    now: Moment,
    done: &Done,
    entry: &EntryReply,
    nth: u32,
) -> Result<StoreAnswer, Error> {
    let in_force = in_force(join.pace, done)?;
    let found = Found { entry, nth };
    let (verdict, state) = verdict(join, in_force, now, &found).ok_or(Error::InvalidReply)?;
    let expires = expires_at(join, in_force.rate, now, &found);
    // The script has charged by its own decision, so this decision must be the same.
    if found.is_accepted() == matches!(verdict, Verdict::Reject(_)) {
        return Err(Error::InvalidReply);
    }
    let charge = || Charge {
        slot: match join.algorithm {
            Algorithm::LeakyBucket => found.slot(join.limit.cost).0,
            _ => 0,
        },
        at: match join.algorithm {
            Algorithm::SlidingWindowLog => moment(entry.found[1]),
            _ => now,
        },
        cost: join.limit.cost,
    };
    Ok(StoreAnswer {
        verdict,
        now,
        charge: found.is_accepted().then(charge),
        in_force,
        usable_until: expires.filter(|_| found.is_accepted()),
        state,
    })
}

/// Findings of the script for one of several equal joins.
struct Found<'a> {
    entry: &'a EntryReply,
    nth: u32,
}

impl Found<'_> {
    /// Returns whether the script accepted the join.
    fn is_accepted(&self) -> bool {
        self.nth < self.entry.done
    }

    /// Returns the sum of the charges of the joins before it.
    fn before(&self, cost: Cost) -> u64 {
        u64::from(self.nth.min(self.entry.done)) * u64::from(cost.get())
    }

    /// Returns its slot, and the slot's distance from the first slot at the schedule's end.
    fn slot(&self, cost: Cost) -> (u64, i128) {
        let [.., end] = self.entry.found;
        let free = &self.entry.free;
        let slot = usize::try_from(self.nth).map_or(None, |nth| free.get(nth));
        let slot = slot.copied().unwrap_or_else(|| {
            let taken = u64::try_from(free.len()).unwrap_or(u64::MAX);
            end.saturating_add(self.before(cost)).saturating_sub(taken)
        });
        (slot, i128::from(slot) - i128::from(end))
    }
}

/// Returns when the slot of a request expires: at its departure time, or its window's end.
fn expires_at(join: &Join<'_>, rate: Rate, now: Moment, found: &Found<'_>) -> Option<Moment> {
    let [first, second, third, _] = found.entry.found;
    let level = match join.algorithm {
        Algorithm::LeakyBucket => {
            let behind = found.slot(join.limit.cost).1;
            ticks(rate, third, second) + behind * rate.ticks_per_request()
        }
        Algorithm::TokenBucket => {
            let before = first.checked_add(found.before(join.limit.cost))?;
            ticks(rate, before, second)
        }
        Algorithm::FixedWindow | Algorithm::SlidingWindowCounter => {
            let period = u64::try_from(rate.period().as_nanos()).ok()?;
            return Some(Moment::from_nanos(
                first.checked_add(1)?.checked_mul(period)?,
            ));
        }
        Algorithm::SlidingWindowLog => return None,
    };
    Some(Bucket::next_at_level(rate, level, now).drained_at(rate))
}

/// Computes the verdict from the script's findings with `limit`, and the key's state after it.
fn verdict(
    join: &Join<'_>,
    InForce { rate, differs, .. }: InForce,
    now: Moment,
    found: &Found<'_>,
) -> Option<(Verdict, StoredState)> {
    let own = join.limit.burst.saturating_add(1);
    let goes_by_rate = differs && !join.limit.is_unlimited();
    let by_rate = rate.whole_count().filter(|_| goes_by_rate);
    let capacity = by_rate.unwrap_or(own);
    let allowance = Allowance { rate, capacity };
    let cost = join.limit.cost;
    let (before, [first, second, third, _]) = (found.before(cost), found.entry.found);
    let in_window = |mut meter: Meter| {
        let verdict = meter.decide(allowance, cost, now);
        (verdict, StoredState::Window(meter))
    };
    Some(match join.algorithm {
        Algorithm::LeakyBucket => {
            let level = ticks(rate, first.checked_add(before)?, second);
            let schedule_level =
                ticks(rate, third, second) + found.slot(cost).1 * rate.ticks_per_request();
            let verdict = scheduled(join.sent_limit(), rate, now, level, schedule_level);
            (
                verdict,
                StoredState::Level(raised(level, rate, cost, verdict)),
            )
        }
        Algorithm::TokenBucket => {
            let level = ticks(rate, first.checked_add(before)?, second);
            let verdict = of_tokens(join.limit, rate, now, level);
            (
                verdict,
                StoredState::Missing(raised(level, rate, cost, verdict)),
            )
        }
        Algorithm::FixedWindow => {
            let counted = FixedWindow::counted(first, small(second.checked_add(before)?));
            in_window(Meter::FixedWindow(counted))
        }
        Algorithm::SlidingWindowCounter => {
            let (previous, current) = (small(second), small(third.checked_add(before)?));
            let counter = SlidingWindowCounter::counted(first, previous, current);
            in_window(Meter::SlidingWindowCounter(counter))
        }
        Algorithm::SlidingWindowLog => logged(allowance, cost, now, found)?,
    })
}

/// Returns the level after a request. Only an accepted request raises it.
fn raised(level: i128, rate: Rate, cost: Cost, verdict: Verdict) -> i128 {
    match verdict {
        Verdict::Reject(_) => level,
        Verdict::Pass { .. } | Verdict::Delay { .. } => {
            level + i128::from(cost.get()) * rate.ticks_per_request()
        }
    }
}

/// Returns the verdict of a token bucket that lacks `level` before the request.
fn of_tokens(limit: Limit, rate: Rate, now: Moment, level: i128) -> Verdict {
    let limit = Limit {
        delay: Delay::Never,
        max_wait: None,
        ..limit
    };
    let mut bucket = Bucket::next_at_level(rate, level, now);
    match bucket.decide(rate, limit, now) {
        // As in `limit`: the number of missing tokens, plus one for this request.
        Verdict::Reject(refusal) => Verdict::Reject(Refusal {
            excess: bucket.excess(rate, now).plus(limit.cost),
            ..refusal
        }),
        passes => passes,
    }
}

/// Returns the verdict of a log, which counts the accepted requests within the last period.
fn logged(
    allowance: Allowance,
    cost: Cost,
    now: Moment,
    found: &Found<'_>,
) -> Option<(Verdict, StoredState)> {
    let [first, _, third, fourth] = found.entry.found;
    let counting = first.checked_add(found.before(cost))?;
    let count = small(counting);
    let excess = Excess::of(count).plus(cost);
    if counting >= u64::from(allowance.for_cost(cost).capacity) {
        let one_more_at = moment(fourth);
        let refusal = Refusal {
            reason: Reason::Burst,
            excess,
            retry_at: one_more_at,
        };
        let state = StoredState::Log { count, one_more_at };
        return Some((Verdict::Reject(refusal), state));
    }
    let is_last = found.nth + 1 == found.entry.done;
    let one_more_at = if is_last { moment(third) } else { now };
    let count = count.saturating_add(cost.get());
    let state = StoredState::Log { count, one_more_at };
    Some((Verdict::Pass { excess }, state))
}

/// Returns the verdict on a request that makes `level`.
///
/// Its departure time is when the level `schedule_level` has leaked down to its `delay`.
fn scheduled(limit: Limit, rate: Rate, now: Moment, level: i128, schedule_level: i128) -> Verdict {
    let limit = Limit {
        max_wait: limit.max_wait.map(whole_micros),
        ..limit
    };
    let verdict = Bucket::next_at_level(rate, level, now).decide(rate, limit, now);
    let excess = match verdict {
        Verdict::Reject(_) => return verdict,
        Verdict::Pass { excess } | Verdict::Delay { excess, .. } => excess,
    };
    let whenever = Limit {
        burst: u32::MAX,
        delay: limit.delay,
        above_burst: 0,
        max_wait: None,
        ..limit
    };
    match Bucket::next_at_level(rate, schedule_level, now).decide(rate, whenever, now) {
        Verdict::Delay { until, .. } => Verdict::Delay { until, excess },
        _ => Verdict::Pass { excess },
    }
}
