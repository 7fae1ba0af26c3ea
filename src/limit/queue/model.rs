//! A slow and simple model of nginx's `limit_req`, to test the queue against.
//!
//! Levels are counted in parts of a request ([`UNIT`]), and leak by whole parts in a nanosecond.
//! Every question is answered by a replay of the whole history. As in nginx, the *excess* is the
//! level that a request made on arrival.

use crate::{Cost, Delay, Limit, Moment, Rate, Reason};

/// Number of parts in one request.
///
/// Every [`Pace`] leaks a whole number of parts in a nanosecond, so no level is ever rounded.
pub const UNIT: i128 = 420_000_000_000;

/// A rate without the type [`Rate`]: a number of requests in a number of nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// The same rate as the text of a [`Rate`].
    text: &'static str,
    requests: i128,
    nanos: i128,
}

const fn pace(text: &'static str, requests: i128, nanos: i128) -> Pace {
    assert!(UNIT * requests % nanos == 0);
    Pace {
        text,
        requests,
        nanos,
    }
}

/// Paces in rows. Between the paces of one row, a level is converted without rounding.
pub const FAMILIES: [&[Pace]; 4] = [
    &[
        pace("1r/s", 1, 1_000_000_000),
        pace("3r/s", 3, 1_000_000_000),
        pace("7r/s", 7, 1_000_000_000),
        pace("10r/s", 10, 1_000_000_000),
        pace("1000000r/s", 1_000_000, 1_000_000_000),
    ],
    &[
        pace("1r/m", 1, 60_000_000_000),
        pace("7r/m", 7, 60_000_000_000),
        pace("30r/m", 30, 60_000_000_000),
        pace("1000r/m", 1_000, 60_000_000_000),
    ],
    &[
        pace("0.5r/s", 1, 2_000_000_000),
        pace("0.3r/s", 3, 10_000_000_000),
        pace("2.5r/s", 5, 2_000_000_000),
    ],
    &[pace("5r/250ms", 5, 250_000_000)],
];

/// Returns all of [`FAMILIES`], and some paces between which a level has to be rounded.
pub fn paces() -> Vec<Pace> {
    let odd = [
        pace("1r/7s", 1, 7_000_000_000),
        pace("11r/210ms", 11, 210_000_000),
        pace("2r/3s", 2, 3_000_000_000),
        pace("1r/1us", 1, 1_000),
    ];
    FAMILIES.concat().into_iter().chain(odd).collect()
}

impl Pace {
    pub fn rate(self) -> Rate {
        self.text.parse().expect("a rate")
    }

    /// Returns the parts that leak in a nanosecond.
    pub fn leak(self) -> i128 {
        UNIT * self.requests / self.nanos
    }

    /// Returns a twelfth of the time between two departures, in nanoseconds, rounded down.
    pub fn twelfth(self) -> u64 {
        u64::try_from(self.nanos / self.requests / 12).expect("short")
    }
}

/// Event of the history. `at` is in nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A request came. `charged` is true until its charge is refunded.
    Came {
        id: u64,
        at: i128,
        cost: i128,
        charged: bool,
    },
    /// The rate changed.
    Retuned { at: i128, leak: i128 },
}

/// The model of one queue.
#[derive(Debug)]
pub struct Model {
    pace: Pace,
    leak: i128,
    history: Vec<Event>,
    /// The waiters in order of arrival, each with its delay.
    waiting: Vec<(u64, u32)>,
}

/// State of a history at one instant.
struct Replay {
    at: i128,
    leak: i128,
    /// nginx's excess, except that it may fall below zero between requests.
    ///
    /// `None`: no request so far.
    excess: Option<i128>,
    /// Number of each request, and the rest of the excess that it made. May be negative.
    own: Vec<(u64, i128)>,
    /// Number of each request, and the level that it found on arrival, or would have found if it
    /// was cancelled.
    ///
    /// Negative: the bucket was empty.
    found: Vec<(u64, i128)>,
}

impl Replay {
    fn advance(&mut self, to: i128) {
        let leaked = self.leak * (to - self.at);
        self.at = to;
        let own = self.own.iter_mut().map(|(_, own)| own);
        for level in self.excess.iter_mut().chain(own) {
            *level -= leaked;
        }
    }

    /// Returns the level that one more request would find.
    fn next(&self) -> i128 {
        self.excess.map_or(0, |excess| (excess + UNIT).max(0))
    }
}

/// Verdict of the model on a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Judgement {
    Pass,
    Delay(Moment),
    Reject(Reason),
}

impl Model {
    pub fn new(pace: Pace) -> Self {
        Self {
            pace,
            leak: pace.leak(),
            history: Vec::new(),
            waiting: Vec::new(),
        }
    }

    fn replay(&self, now: Moment) -> Replay {
        let mut replay = Replay {
            at: 0,
            leak: self.pace.leak(),
            excess: None,
            own: Vec::new(),
            found: Vec::new(),
        };
        for event in &self.history {
            match *event {
                Event::Came {
                    id,
                    at,
                    cost,
                    charged,
                } => {
                    replay.advance(at);
                    let found = replay.next();
                    let excess = replay.excess.unwrap_or(-UNIT);
                    replay.found.push((id, excess + UNIT));
                    if charged {
                        replay.excess = Some(found + (cost - 1) * UNIT);
                        replay.own.push((id, found));
                    }
                }
                Event::Retuned { at, leak } => {
                    replay.advance(at);
                    replay.leak = leak;
                }
            }
        }
        replay.advance(nanos(now));
        replay
    }

    /// Returns the verdict on a request at `now`, and the excess that it makes.
    pub fn judge(&self, limit: Limit, now: Moment) -> (Judgement, i128) {
        let found = self.replay(now).next();
        let excess = found + i128::from(limit.cost.get() - 1) * UNIT;
        let wait = match limit.delay {
            Delay::Above(free) => (found - i128::from(free) * UNIT).max(0),
            Delay::Never => 0,
        };
        let longest = limit
            .max_wait
            .map(|longest| i128::try_from(longest.as_nanos()).expect("short") * self.leak);
        let judgement = if excess > self.ceiling(limit) * UNIT {
            Judgement::Reject(Reason::Burst)
        } else if longest.is_some_and(|longest| wait > longest) {
            Judgement::Reject(Reason::MaxWait)
        } else if wait > 0 {
            Judgement::Delay(moment(nanos(now), wait, self.leak))
        } else {
            Judgement::Pass
        };
        (judgement, excess)
    }

    /// Returns the largest level, in requests. Above `burst` a request waits for a minute at most.
    fn ceiling(&self, limit: Limit) -> i128 {
        let burst = i128::from(limit.burst);
        match limit.delay {
            Delay::Above(delay) if delay < limit.burst => {
                let in_time = 60_000_000_000 * self.leak / UNIT;
                let most = burst + i128::from(limit.above_burst);
                burst.max(most.min(i128::from(delay) + in_time))
            }
            _ => burst,
        }
    }

    /// Charges a request. It waits if `waits` is its delay.
    pub fn came(&mut self, id: u64, now: Moment, cost: Cost, waits: Option<u32>) {
        self.history.push(Event::Came {
            id,
            at: nanos(now),
            cost: cost.get().into(),
            charged: true,
        });
        self.waiting.extend(waits.map(|delay| (id, delay)));
    }

    pub fn retuned(&mut self, pace: Pace, now: Moment) {
        self.leak = pace.leak();
        self.history.push(Event::Retuned {
            at: nanos(now),
            leak: self.leak,
        });
    }

    /// Removes the charge of a request from the history, as if it had never come.
    pub fn cancel(&mut self, cancelled: u64) {
        for event in &mut self.history {
            if let Event::Came { id, charged, .. } = event
                && *id == cancelled
            {
                *charged = false;
            }
        }
        self.stop_waiting(cancelled);
    }

    /// Changes the cost of a request, as if it had come with that cost.
    pub fn settle(&mut self, settled: u64, actual: Cost) {
        for event in &mut self.history {
            if let Event::Came { id, cost, .. } = event
                && *id == settled
            {
                *cost = actual.get().into();
            }
        }
    }

    pub fn stop_waiting(&mut self, removed: u64) {
        self.waiting.retain(|(id, _)| *id != removed);
    }

    pub fn waiting(&self) -> &[(u64, u32)] {
        &self.waiting
    }

    /// Returns whether each request after `id` found a level of at least this cost.
    ///
    /// Cancelled requests count, too.
    pub fn all_after_found(&self, id: u64, cost: Cost, now: Moment) -> bool {
        let cost = i128::from(cost.get()) * UNIT;
        let mut after = after(self.replay(now).found, id);
        after.all(|found| found >= cost)
    }

    /// Returns whether the bucket was never empty since `id` came.
    pub fn never_empty_since(&self, id: u64, now: Moment) -> bool {
        let replay = self.replay(now);
        let is_empty = replay.excess.is_none_or(|excess| excess + UNIT < 0);
        let mut after = after(replay.found, id);
        !is_empty && after.all(|found| found >= 0)
    }

    /// Returns the due instant of each waiter, in order of arrival.
    pub fn dues(&self, now: Moment) -> Vec<(Moment, u64)> {
        let replay = self.replay(now);
        let due = |(id, delay): &(u64, u32)| {
            let (_, own) = replay.own.iter().find(|(other, _)| other == id)?;
            let ahead = own - i128::from(*delay) * UNIT;
            Some((moment(replay.at, ahead, replay.leak), *id))
        };
        self.waiting.iter().filter_map(due).collect()
    }

    /// Returns the next waiter, and its due instant.
    pub fn next_due(&self, now: Moment) -> Option<(Moment, u64)> {
        self.dues(now).into_iter().min_by_key(|(due, _)| *due)
    }

    /// Returns the level at `now`. That of an empty bucket, the lowest, is one request below zero.
    pub fn level(&self, now: Moment) -> i128 {
        self.replay(now).excess.unwrap_or(-UNIT).max(-UNIT)
    }
}

/// Returns the levels that the requests after `id` found.
fn after(found: Vec<(u64, i128)>, id: u64) -> impl Iterator<Item = i128> {
    let from = found.into_iter().skip_while(move |(other, _)| *other != id);
    from.skip(1).map(|(_, found)| found)
}

fn nanos(moment: Moment) -> i128 {
    i128::from(moment.as_nanos())
}

/// Returns the first nanosecond at which `ahead` has leaked, counted from `at`.
fn moment(at: i128, ahead: i128, leak: i128) -> Moment {
    let wait = -(-ahead).div_euclid(leak);
    Moment::from_nanos(u64::try_from((at + wait).max(0)).expect("in time"))
}
