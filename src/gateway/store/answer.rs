//! Answer of the store, Redis, to a join: the verdict that follows from a script's findings.
//!
//! A *join* is a request of a zone that asks for a verdict. Its script finds the state of the key,
//! and charges the request if it is accepted. These functions compute the same verdict from the
//! findings, with the arithmetic of [`limit`]. `reply` reads the findings from bytes. A *tick* is
//! the unit in which [`Rate`] counts levels exactly.

use config::redis::{ticks, whole_micros};
use limit::{
    Account, Algorithm, Allowance, Bucket, Cost, Delay, Excess, FixedWindow, Limit, Meter, Moment,
    Rate, Reason, Refusal, SlidingWindowCounter, Verdict,
};

use super::operation::from_micros;
use super::reply::{KeyReply, OperationReply};
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
    /// State of the key after the decision.
    pub(super) state: StoredState,
}

impl StoreAnswer {
    /// Returns the key's state after the decision, converted to another clock.
    ///
    /// The other clock showed `own_now` when Redis's clock showed [`now`](Self::now).
    pub fn account(&self, own_now: Moment) -> Account {
        self.state.account(self.in_force.rate, self.now, own_now)
    }
}

/// Charge of a request in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// Number of the charge's first slot on the schedule; 0 unless the algorithm is `leaky_bucket`.
    pub(super) slot: u64,
    /// Time of the charge.
    pub(super) at: Moment,
    /// Charged cost: the number of consecutive slots.
    pub(super) cost: Cost,
}

impl Charge {
    /// Returns the number of the charge's first slot on the schedule.
    #[cfg(test)]
    pub(crate) fn slot(&self) -> u64 {
        self.slot
    }

    /// Returns the charged cost.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// Returns the part of the charge that has `cost` slots, after the first `skipped` slots.
    pub fn part(&self, skipped: u32, cost: Cost) -> Self {
        Self {
            slot: self.slot + u64::from(skipped),
            cost,
            ..*self
        }
    }

    /// Returns the part of the charge above `cost`: its last slots. `None`: it is at most `cost`.
    pub fn too_much(&self, cost: Cost) -> Option<Self> {
        let excess = self.cost.above(cost)?;
        Some(self.part(cost.get(), excess))
    }

    /// Returns the charge with its slots moved up by the slots of `cost`.
    pub fn moved_up(&self, cost: Cost) -> Self {
        Self {
            slot: self.slot.saturating_sub(cost.get().into()),
            ..*self
        }
    }

    /// Returns whether the slots of the charge are behind those of another charge.
    pub fn is_behind(&self, other: &Self) -> bool {
        self.slot > other.slot
    }

    /// Returns whether the slots of the charge directly follow those of another charge.
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

/// Converts a count. Larger numbers become `u32::MAX`.
fn saturate(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Returns the rate in force by a reply: another gateway's rate, or that of `pace`.
pub(super) fn in_force(pace: &StoreRate, reply: &KeyReply) -> Result<InForce, Error> {
    let rate = match &reply.other_rate {
        None => pace.rate(),
        Some(written) => written.parse().map_err(|_| Error::InvalidReply)?,
    };
    Ok(InForce {
        rate,
        differs: reply.other_rate.is_some(),
        since: reply.since,
    })
}

/// Returns the answer to a join.
pub(super) fn answer(join: &Join<'_>, reply: &OperationReply<'_>) -> Result<StoreAnswer, Error> {
    let in_force = in_force(join.pace, reply.key)?;
    let decision = decide(join, in_force, reply).ok_or(Error::InvalidReply)?;
    // The script has charged by its own decision, so this decision must be the same.
    if reply.is_done() == matches!(decision.verdict, Verdict::Reject(_)) {
        return Err(Error::InvalidReply);
    }
    let charge = Charge {
        slot: match join.algorithm {
            Algorithm::LeakyBucket => first_slot(reply, join.limit.cost),
            _ => 0,
        },
        at: match (join.algorithm, reply.entry.findings) {
            (Algorithm::SlidingWindowLog, [_, accepted_at, ..]) => from_micros(accepted_at),
            _ => reply.now,
        },
        cost: join.limit.cost,
    };
    Ok(StoreAnswer {
        verdict: decision.verdict,
        now: reply.now,
        charge: reply.is_done().then_some(charge),
        in_force,
        usable_until: decision.slot_expires.filter(|_| reply.is_done()),
        state: decision.state,
    })
}

/// Decision on a join.
struct Decision {
    verdict: Verdict,
    /// State of the key after the join.
    state: StoredState,
    /// When the slot expires: at its departure time, or at its window's end.
    slot_expires: Option<Moment>,
}

/// Decides on a join from the script's findings; `None` if they are out of range.
fn decide(join: &Join<'_>, in_force: InForce, reply: &OperationReply<'_>) -> Option<Decision> {
    let (rate, now) = (in_force.rate, reply.now);
    let cost = join.limit.cost;
    // The script reports its findings once for equal joins. The charges of the accepted ones before
    // this join are added here.
    let charged_before = reply.charged_before(cost);
    let findings = reply.entry.findings;
    let expires_at_level = |level| Some(Bucket::next_at_level(rate, level, now).drained_at(rate));
    let decide_in_window = |mut meter: Meter, window| Decision {
        verdict: meter.decide(allowance(join, in_force), cost, now),
        state: StoredState::Window(meter),
        slot_expires: window_end(window, rate),
    };
    Some(match join.algorithm {
        Algorithm::LeakyBucket => {
            // `requests` and `rest`: level of the key, in whole requests and ticks.
            // `schedule_requests` and the same `rest`: level at the end of the schedule.
            // `schedule_end`: number of the slot at that end.
            let [requests, rest, schedule_requests, schedule_end] = findings;
            let level = ticks(rate, requests.checked_add(charged_before)?, rest);
            let slots_behind_end = i128::from(first_slot(reply, cost)) - i128::from(schedule_end);
            let schedule_level =
                ticks(rate, schedule_requests, rest) + slots_behind_end * rate.ticks_per_request();
            // The script has decided with the limit as it was sent, so this decision uses it, too.
            let verdict = decide_on_schedule(join.sent_limit(), rate, now, level, schedule_level);
            Decision {
                verdict,
                state: StoredState::Level(level_after(level, rate, cost, verdict)),
                slot_expires: expires_at_level(schedule_level),
            }
        }
        Algorithm::TokenBucket => {
            let [requests, rest, ..] = findings;
            let missing = ticks(rate, requests.checked_add(charged_before)?, rest);
            let verdict = decide_by_tokens(join.limit, rate, now, missing);
            Decision {
                verdict,
                state: StoredState::Missing(level_after(missing, rate, cost, verdict)),
                slot_expires: expires_at_level(missing),
            }
        }
        Algorithm::FixedWindow => {
            let [window, count, ..] = findings;
            let count = saturate(count.checked_add(charged_before)?);
            let counter = FixedWindow::counted(window, count);
            decide_in_window(Meter::FixedWindow(counter), window)
        }
        Algorithm::SlidingWindowCounter => {
            let [window, previous, current, _] = findings;
            let current = saturate(current.checked_add(charged_before)?);
            let counter = SlidingWindowCounter::counted(window, saturate(previous), current);
            decide_in_window(Meter::SlidingWindowCounter(counter), window)
        }
        Algorithm::SlidingWindowLog => decide_by_log(allowance(join, in_force), cost, reply)?,
    })
}

/// Returns the number of the first slot of a join: a refunded slot, or one at the schedule's end.
fn first_slot(reply: &OperationReply<'_>, cost: Cost) -> u64 {
    let [.., schedule_end] = reply.entry.findings;
    let free_slots = &reply.entry.free_slots;
    // `nth`: number of equal joins before this one. The first joins get the refunded slots.
    let free_slot = usize::try_from(reply.nth).map_or(None, |nth| free_slots.get(nth));
    free_slot.copied().unwrap_or_else(|| {
        let free_count = u64::try_from(free_slots.len()).unwrap_or(u64::MAX);
        let after_joins_before = schedule_end.saturating_add(reply.charged_before(cost));
        after_joins_before.saturating_sub(free_count)
    })
}

/// Returns the end of a window, by its index since the Unix epoch; `None`: out of range.
fn window_end(window: u64, rate: Rate) -> Option<Moment> {
    let period = u64::try_from(rate.period().as_nanos()).ok()?;
    let nanos = window.checked_add(1)?.checked_mul(period)?;
    Some(Moment::from_nanos(nanos))
}

/// Returns the allowance of a window, as the script applies it.
///
/// A window's count is a part of its rate. So if another gateway's rate is in force, the count of
/// that rate is in force, too.
fn allowance(join: &Join<'_>, in_force: InForce) -> Allowance {
    let InForce { rate, differs, .. } = in_force;
    let other_count = rate.whole_count();
    let other_count = other_count.filter(|_| differs && !join.limit.is_unlimited());
    Allowance {
        rate,
        capacity: other_count.unwrap_or(join.limit.burst.saturating_add(1)),
    }
}

/// Returns the level after a request. Only an accepted request raises it.
fn level_after(level: i128, rate: Rate, cost: Cost, verdict: Verdict) -> i128 {
    match verdict {
        Verdict::Reject(_) => level,
        Verdict::Pass { .. } | Verdict::Delay { .. } => {
            level + i128::from(cost.get()) * rate.ticks_per_request()
        }
    }
}

/// Returns the verdict of a token bucket that lacks `missing` ticks before the request.
fn decide_by_tokens(limit: Limit, rate: Rate, now: Moment, missing: i128) -> Verdict {
    let limit = Limit {
        delay: Delay::Never,
        max_wait: None,
        ..limit
    };
    let mut bucket = Bucket::next_at_level(rate, missing, now);
    match bucket.decide(rate, limit, now) {
        // As `Meter::refuses` of the crate `limit` computes it: the number of missing tokens, plus
        // the cost of this request.
        Verdict::Reject(refusal) => Verdict::Reject(Refusal {
            excess: bucket.excess(rate, now).plus(limit.cost),
            ..refusal
        }),
        accepted => accepted,
    }
}

/// Decides by a log, which counts the accepted requests within the last period.
fn decide_by_log(allowance: Allowance, cost: Cost, reply: &OperationReply<'_>) -> Option<Decision> {
    let [counted, _, next_after_accepted, next_after_rejected] = reply.entry.findings;
    let counted = counted.checked_add(reply.charged_before(cost))?;
    let count = saturate(counted);
    let excess = Excess::of(count).plus(cost);
    let decision = |verdict, count, one_more_at| Decision {
        verdict,
        state: StoredState::Log { count, one_more_at },
        slot_expires: None,
    };
    if counted >= u64::from(allowance.for_cost(cost).capacity) {
        let retry_at = from_micros(next_after_rejected);
        let refusal = Refusal {
            reason: Reason::Burst,
            excess,
            retry_at,
        };
        return Some(decision(Verdict::Reject(refusal), count, retry_at));
    }
    let is_last_accepted = reply.nth + 1 == reply.entry.done_count;
    let one_more_at = if is_last_accepted {
        from_micros(next_after_accepted)
    } else {
        reply.now
    };
    let count = count.saturating_add(cost.get());
    Some(decision(Verdict::Pass { excess }, count, one_more_at))
}

/// Returns the verdict on a request that raises the level of its key to `level`.
///
/// The level of the key decides whether the request is accepted. An accepted request departs when
/// `schedule_level`, the level at its slot on the schedule, has leaked down to the limit's `delay`.
fn decide_on_schedule(
    limit: Limit,
    rate: Rate,
    now: Moment,
    level: i128,
    schedule_level: i128,
) -> Verdict {
    let limit = Limit {
        max_wait: limit.max_wait.map(whole_micros),
        ..limit
    };
    let verdict = Bucket::next_at_level(rate, level, now).decide(rate, limit, now);
    let excess = match verdict {
        Verdict::Reject(_) => return verdict,
        Verdict::Pass { excess } | Verdict::Delay { excess, .. } => excess,
    };
    let without_bounds = Limit {
        burst: u32::MAX,
        above_burst: 0,
        max_wait: None,
        ..limit
    };
    match Bucket::next_at_level(rate, schedule_level, now).decide(rate, without_bounds, now) {
        Verdict::Delay { until, .. } => Verdict::Delay { until, excess },
        _ => Verdict::Pass { excess },
    }
}
