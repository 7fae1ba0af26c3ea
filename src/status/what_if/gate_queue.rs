//! The queue of a gate, second by second, with requests as a fluid.

use std::collections::VecDeque;

use crate::config::Origin;
use crate::status::views::GateReplayed;

/// What a gate lets through in a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Capacity(f64);

impl Capacity {
    /// No pace and no places.
    pub(super) const UNLIMITED: Self = Self(f64::INFINITY);

    /// In requests a second.
    pub(super) fn of(per_second: f64) -> Self {
        Self(per_second.max(0.0))
    }
}

/// Requests wait in order. Those of a second come evenly within it.
#[derive(Debug)]
pub(super) struct GateQueue {
    waiting: VecDeque<Crowd>,
    depth: f64,
    /// The time so far, in seconds.
    now: f64,
    max_queue: f64,
    /// In seconds.
    queue_timeout: f64,
    departed: f64,
    rejected: f64,
    most_in_a_second: f64,
    deepest: f64,
    /// How many waited how long, in seconds.
    waits: Vec<(f64, f64)>,
}

/// Requests that came evenly from one moment to another.
#[derive(Clone, Copy, Debug)]
struct Crowd {
    from: f64,
    until: f64,
    count: f64,
}

impl GateQueue {
    /// With so many requests that wait already.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn new(origin: &Origin, waiting: f64) -> Self {
        let mut queue = Self {
            waiting: VecDeque::new(),
            depth: 0.0,
            now: 0.0,
            max_queue: origin.max_queue.get() as f64,
            queue_timeout: origin.queue_timeout.as_secs_f64(),
            departed: 0.0,
            rejected: 0.0,
            most_in_a_second: 0.0,
            deepest: waiting,
            waits: Vec::new(),
        };
        queue.join(0.0, waiting);
        queue
    }

    /// Requests come evenly from `from` until now.
    fn join(&mut self, from: f64, count: f64) {
        if count > 0.0 {
            self.depth += count;
            self.waiting.push_back(Crowd {
                from,
                until: self.now,
                count,
            });
        }
    }

    /// So many requests come in the next `span` seconds.
    pub(super) fn second(&mut self, span: f64, arrivals: f64, capacity: Capacity) {
        let from = self.now;
        self.now += span;
        self.join(from, arrivals);
        let departed = self.serve(from, span, capacity.0);
        self.most_in_a_second = self.most_in_a_second.max(departed / span);
        self.reject_late();
        while self.depth > self.max_queue {
            let too_many = self.depth - self.max_queue;
            let Some(newest) = self.waiting.back_mut() else {
                break;
            };
            let rejected = too_many.min(newest.count);
            newest.count -= rejected;
            self.rejected += rejected;
            self.depth -= rejected;
            if newest.count <= 0.0 {
                self.waiting.pop_back();
            }
        }
        self.deepest = self.deepest.max(self.depth);
    }

    /// Lets the first ones through. Returns how many.
    fn serve(&mut self, from: f64, span: f64, per_second: f64) -> f64 {
        let mut served = 0.0;
        while let Some(first) = self.waiting.front_mut() {
            let some = first.count.min(per_second * span - served);
            if some <= 0.0 {
                break;
            }
            // The middle one stands for all that leave together.
            let leaves = from + (served + some / 2.0) / per_second;
            let part = some / first.count;
            let until = first.from + (first.until - first.from) * part;
            let came = f64::midpoint(first.from, until);
            self.waits.push(((leaves - came).max(0.0), some));
            served += some;
            first.from = until;
            first.count -= some;
            if first.count > 0.0 {
                break;
            }
            self.waiting.pop_front();
        }
        self.departed += served;
        self.depth -= served;
        served
    }

    /// Rejects those that have waited for too long.
    fn reject_late(&mut self) {
        let came_before = self.now - self.queue_timeout;
        while let Some(first) = self.waiting.front_mut() {
            let is_over = first.until <= came_before;
            let span = first.until - first.from;
            let part = if is_over || span <= 0.0 {
                f64::from(u8::from(is_over))
            } else {
                ((came_before - first.from) / span).clamp(0.0, 1.0)
            };
            let rejected = first.count * part;
            self.rejected += rejected;
            self.depth -= rejected;
            first.count -= rejected;
            first.from += span * part;
            if !is_over && first.count > 0.0 {
                break;
            }
            self.waiting.pop_front();
        }
    }

    /// What has become of all requests. Those that still wait are counted as such.
    pub(super) fn finish(mut self) -> GateReplayed {
        self.waits.sort_by(|one, other| one.0.total_cmp(&other.0));
        let quantile = |part: f64| {
            let wanted = part * self.departed;
            let mut so_far = 0.0;
            let mut waits = self.waits.iter();
            let found = waits.find(|(_, count)| {
                so_far += count;
                so_far >= wanted
            });
            found.or(self.waits.last()).map(|(wait, _)| *wait)
        };
        let (departed, rejected) = (whole(self.departed), whole(self.rejected));
        let waiting = whole(self.depth);
        GateReplayed {
            departed,
            rejected,
            waiting,
            share_rejected: share(rejected, departed + rejected + waiting),
            wait_p50: quantile(0.5),
            wait_p95: quantile(0.95),
            wait_p99: quantile(0.99),
            wait_max: quantile(1.0),
            most_in_a_second: whole(self.most_in_a_second),
            deepest: whole(self.deepest),
            ..GateReplayed::default()
        }
    }
}

/// A count of requests that was computed in parts of them.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub(super) fn whole(count: f64) -> u64 {
    count.round().max(0.0) as u64
}

#[allow(clippy::cast_precision_loss)]
pub(super) fn share(part: u64, all: u64) -> f64 {
    if all == 0 {
        return 0.0;
    }
    part as f64 / all as f64
}
