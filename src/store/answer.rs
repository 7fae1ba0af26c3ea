use redis::{FromRedisValue, Value, from_redis_value};

use super::pace::{ticks, whole_micros};
use super::stored_state::StoredState;
use super::{Error, Join, Pace, Retune};
use crate::limit::{
    Account, Algorithm, Allowance, Bucket, Cost, Delay, Excess, FixedWindow, Limit, Meter, Moment,
    Rate, Reason, Refusal, SlidingWindowCounter, Verdict,
};

/// The store's answer to a [`Join`]. All moments are on Redis's clock.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreAnswer {
    /// The decision about the request.
    pub verdict: Verdict,
    /// When it was decided. Relates Redis's clock to the caller's.
    pub now: Moment,
    /// The charge; `None` if the request was rejected.
    pub charge: Option<Charge>,
    /// The rate used for the decision.
    pub in_force: InForce,
    pub(super) state: StoredState,
}

impl StoreAnswer {
    /// The key's state after the decision, converted to another clock.
    ///
    /// The other clock showed `at` when Redis's clock showed [`now`](Self::now).
    #[must_use]
    pub fn account(&self, at: Moment) -> Account {
        self.state.account(self.in_force.rate, self.now, at)
    }
}

/// What a request was charged in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The place on the schedule that belongs to the assigned time.
    pub(super) place: u64,
    /// When it was charged.
    pub(super) at: Moment,
    /// How many places it took: the first one, and those behind it.
    pub(super) cost: Cost,
}

impl Charge {
    /// What was charged.
    #[must_use]
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// So many of its places, from the one with this index on.
    #[must_use]
    pub fn part(&self, from: u32, cost: Cost) -> Self {
        Self {
            place: self.place + u64::from(from),
            cost,
            ..*self
        }
    }

    /// What was charged too much for a request that costs this: the last places.
    ///
    /// `None` if nothing was.
    #[must_use]
    pub fn too_much(&self, cost: Cost) -> Option<Self> {
        let less = self.cost.above(cost)?;
        Some(self.part(cost.get(), less))
    }

    /// The same number of places, so many earlier.
    #[must_use]
    pub fn moved_up(&self, by: Cost) -> Self {
        Self {
            place: self.place.saturating_sub(by.get().into()),
            ..*self
        }
    }

    /// Whether its places are behind those of another charge.
    #[must_use]
    pub fn is_behind(&self, other: &Self) -> bool {
        self.place > other.place
    }

    /// Whether its places come next to those of another charge.
    #[must_use]
    pub fn follows(&self, other: &Self) -> bool {
        self.place == other.place + u64::from(other.cost.get())
    }
}

/// The rate at which a key is paced, whatever the gateway's own file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InForce {
    /// The rate.
    pub rate: Rate,
    /// Whether it differs from the rate in the asking gateway's file.
    pub differs: bool,
    /// When it took effect, if it was changed while the key was known.
    pub since: Option<Moment>,
}

/// The store's answer to a [`Retune`]. All moments are on Redis's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retuned {
    /// When the retune was done.
    pub now: Moment,
    /// The rate that the key now has.
    pub in_force: InForce,
}

type Reply = (u8, u64, String, u64, Vec<u64>);

/// Splits a reply into its parts: accepted, now, rate, since, and all other numbers.
fn parts(reply: Value) -> Option<Reply> {
    let Value::Array(items) = reply else {
        return None;
    };
    let mut items = items.into_iter();
    let (accepted, now, rate, since) = (items.next()?, items.next()?, items.next()?, items.next()?);
    let rest = items.map(number).collect::<Option<Vec<u64>>>()?;
    let accepted = u8::from_redis_value(accepted).ok()?;
    let rate = from_redis_value(rate).ok()?;
    Some((accepted, number(now)?, rate, number(since)?, rest))
}

fn number(value: Value) -> Option<u64> {
    from_redis_value(value).ok()
}

fn moment(micros: u64) -> Moment {
    Moment::from_nanos(micros.saturating_mul(1000))
}

fn small(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Parses the reply to `refund`: whether anything was given back.
pub(super) fn refunded(reply: Value) -> Result<bool, Error> {
    let (given, ..) = parts(reply).ok_or(Error::InvalidReply)?;
    Ok(given == 1)
}

/// Parses the reply to `retune`.
pub(super) fn retuned(retune: &Retune<'_>, reply: Value) -> Result<Retuned, Error> {
    let (_, now, written, since, _) = parts(reply).ok_or(Error::InvalidReply)?;
    Ok(Retuned {
        now: moment(now),
        in_force: in_force(retune.pace, &written, since)?,
    })
}

fn in_force(pace: &Pace, written: &str, since: u64) -> Result<InForce, Error> {
    let own = pace.rate();
    let differs = written != own.to_string();
    let rate = if differs {
        written.parse().map_err(|_| Error::InvalidReply)?
    } else {
        own
    };
    let since = Some(since).filter(|since| *since > 0).map(moment);
    Ok(InForce {
        rate,
        differs,
        since,
    })
}

/// Parses the reply to `join`.
pub(super) fn answer(join: &Join<'_>, reply: Value) -> Result<StoreAnswer, Error> {
    let (accepted, now, written, since, found) = parts(reply).ok_or(Error::InvalidReply)?;
    let now = moment(now);
    let in_force = in_force(join.pace, &written, since)?;
    let (verdict, state) = verdict(join, in_force, now, &found).ok_or(Error::InvalidReply)?;
    // The script has charged by its own decision, so this decision must be the same.
    if (accepted == 1) == matches!(verdict, Verdict::Reject(_)) {
        return Err(Error::InvalidReply);
    }
    Ok(StoreAnswer {
        verdict,
        now,
        charge: (accepted == 1).then(|| Charge {
            place: found.last().copied().unwrap_or_default(),
            at: now,
            cost: join.limit.cost,
        }),
        in_force,
        state,
    })
}

/// Computes the verdict from the script's findings with `limit`, and the key's state after it.
fn verdict(
    join: &Join<'_>,
    InForce { rate, differs, .. }: InForce,
    now: Moment,
    found: &[u64],
) -> Option<(Verdict, StoredState)> {
    let own = join.limit.burst.saturating_add(1);
    let goes_by_rate = differs && !join.limit.is_unlimited();
    let most = rate.whole_count().filter(|_| goes_by_rate).unwrap_or(own);
    let allowance = Allowance { rate, most };
    let cost = join.limit.cost;
    let next = |level: i128, verdict: Verdict| match verdict {
        Verdict::Reject(_) => level,
        Verdict::Pass { .. } | Verdict::Delay { .. } => {
            level + i128::from(cost.get()) * rate.ticks_per_request()
        }
    };
    Some(match (join.algorithm, found) {
        (Algorithm::LeakyBucket, [level, part, stands, rest, _]) => {
            let level = ticks(rate, *level, *part);
            let stands = ticks(rate, *stands, *rest);
            let verdict = scheduled(join.limit, rate, now, level, stands);
            (verdict, StoredState::Level(next(level, verdict)))
        }
        (Algorithm::TokenBucket, [level, part, ..]) => {
            let limit = Limit {
                delay: Delay::Never,
                max_wait: None,
                ..join.limit
            };
            let level = ticks(rate, *level, *part);
            let mut bucket = Bucket::next_at_level(rate, level, now);
            let verdict = match bucket.decide(rate, limit, now) {
                // As in `limit`: how many tokens are missing, plus one for this request.
                Verdict::Reject(refusal) => Verdict::Reject(Refusal {
                    excess: bucket.excess(rate, now).and(cost),
                    ..refusal
                }),
                passes => passes,
            };
            (verdict, StoredState::Missing(next(level, verdict)))
        }
        (Algorithm::FixedWindow, [window, count]) => {
            let mut meter = Meter::FixedWindow(FixedWindow::counted(*window, small(*count)));
            (
                meter.decide(allowance, cost, now),
                StoredState::Window(meter),
            )
        }
        (Algorithm::SlidingWindowCounter, [window, previous, current]) => {
            let (previous, current) = (small(*previous), small(*current));
            let counter = SlidingWindowCounter::counted(*window, previous, current);
            let mut meter = Meter::SlidingWindowCounter(counter);
            (
                meter.decide(allowance, cost, now),
                StoredState::Window(meter),
            )
        }
        (Algorithm::SlidingWindowLog, [counting, one_more_at]) => {
            let (count, one_more_at) = (small(*counting), moment(*one_more_at));
            let excess = Excess::of(count).and(cost);
            if *counting >= u64::from(allowance.for_cost(cost).most) {
                let refusal = Refusal {
                    reason: Reason::Burst,
                    excess,
                    retry_at: one_more_at,
                };
                let state = StoredState::Log { count, one_more_at };
                (Verdict::Reject(refusal), state)
            } else {
                let count = count.saturating_add(cost.get());
                let state = StoredState::Log { count, one_more_at };
                (Verdict::Pass { excess }, state)
            }
        }
        _ => return None,
    })
}

/// The verdict on a request that makes `level`.
///
/// Its departure time is when the level `stands` has leaked down to its `delay`.
fn scheduled(limit: Limit, rate: Rate, now: Moment, level: i128, stands: i128) -> Verdict {
    let limit = Limit {
        max_wait: limit.max_wait.map(whole_micros),
        ..limit
    };
    let judged = Bucket::next_at_level(rate, level, now).decide(rate, limit, now);
    let excess = match judged {
        Verdict::Reject(_) => return judged,
        Verdict::Pass { excess } | Verdict::Delay { excess, .. } => excess,
    };
    let whenever = Limit {
        burst: u32::MAX,
        delay: limit.waits(),
        held: 0,
        max_wait: None,
        ..limit
    };
    match Bucket::next_at_level(rate, stands, now).decide(rate, whenever, now) {
        Verdict::Delay { until, .. } => Verdict::Delay { until, excess },
        _ => Verdict::Pass { excess },
    }
}
