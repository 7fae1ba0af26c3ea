//! A gate that shares one grid of slots with the gates of other gateways.
//!
//! A *slot* is an instant at which one request may leave for the origin. The *grid* is the schedule
//! of slots that the store grants to the gateways. [`claims`](super::claims) requests slots,
//! [`granted`](super::granted) keeps them. A gate that leaves the grid *stands alone*: it has its
//! own schedule, at a part of the rate.

use std::hash::Hash;
use std::num::NonZeroU32;
use std::time::Duration;

use super::granted::{Granted, SlotCounts};
use super::{Departed, Gate, KeyReport, Moment, Rate};

/// Time by which the store grants slots ahead.
const GRANT_AHEAD: Duration = Duration::from_millis(50);
/// Upper bound of the classes in a demand.
const MAX_CLASSES: usize = 16;

/// Demand of a gate, as reported to the store and the other gateways.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Number of slots that the gate could use now, beyond the slots that it holds.
    pub slots: u64,
    /// Waiters by class. Empty: no request waits.
    pub classes: Vec<ClassDemand>,
    /// Changes of the keys that have waiters.
    pub keys: KeyReport,
}

/// Demand of one class at a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassDemand {
    /// Hash of the class's name.
    pub class: u32,
    /// Weight of the class against other classes.
    pub weight: u32,
    /// Sum of the weights of the waiting keys. If keys do not share fairly: the number of waiters.
    pub keys: u64,
}

impl<K: Hash + Eq + Clone, W> Gate<K, W> {
    /// Joins the grid: from now on requests leave in the slots that are [granted](Self::grant).
    ///
    /// A slot that is less than one interval after the last departure is lost.
    pub fn share_grid(&mut self) {
        if self.granted.is_none() {
            let (_, from) = self.slot(Moment::default());
            self.divide(NonZeroU32::MIN);
            let interval = self.rate.map_or(Duration::ZERO, Rate::interval);
            let granted = Granted::new(self.slot_counts, from, interval);
            self.granted = Some(Box::new(granted));
        }
    }

    /// Leaves the grid: from now on requests leave at the rate divided by `parts`.
    ///
    /// The first request leaves one interval after the last departure, or now if that is later.
    /// Granted slots are lost.
    pub fn stand_alone(&mut self, parts: NonZeroU32, now: Moment) {
        self.stop_key_reporting();
        // The time before `now` had no slot, and is lost.
        self.opens = self.opens.max(now);
        if let Some(granted) = self.granted.take() {
            let counts = granted.counts;
            self.slot_counts = SlotCounts {
                expired: counts.expired + granted.slots.len() as u64,
                ..counts
            };
            if let Some(last) = &mut self.last_departed {
                last.cost += granted.debt;
            }
        }
        self.waiting.set_parts(&[]);
        self.divide(parts);
    }

    /// Divides the rate among `parts` gates.
    fn divide(&mut self, parts: NonZeroU32) {
        self.parts = parts;
        self.set_rate(self.limits.rate);
    }

    /// Returns whether the gate takes its slots from a shared grid.
    pub fn shares_grid(&self) -> bool {
        self.granted.is_some()
    }

    /// Adds granted slots of the shared grid.
    ///
    /// `free` is the first free slot. `part` is this gate's part of the rate, above 0 and at most
    /// 1, for predictions.
    pub fn grant(&mut self, slots: &[Moment], free: Moment, part: f64, now: Moment) {
        let interval = self.limits.rate.map_or(Duration::ZERO, |rate| {
            let whole = rate.interval().as_secs_f64();
            Duration::try_from_secs_f64(whole / part).unwrap_or(Duration::MAX)
        });
        if let Some(granted) = &mut self.granted {
            granted.add(slots, free, interval, now);
        }
    }

    /// Returns the counts of the slots that the gate was granted.
    pub fn slot_counts(&self) -> SlotCounts {
        let granted = self.granted.as_ref();
        granted.map_or(self.slot_counts, |granted| granted.counts)
    }

    /// Returns the number of held slots that the gate could use from `now` on.
    pub fn granted_slots(&self, now: Moment) -> u64 {
        let ready = self.opens.max(now);
        let granted = self.granted.as_ref();
        granted.map_or(0, |granted| granted.count(ready))
    }

    /// Counts only these parts of the classes' weights: see [`ClassQueue::set_parts`].
    ///
    /// [`ClassQueue::set_parts`]: crate::ClassQueue::set_parts
    pub fn set_class_parts(&mut self, parts: &[(u32, f64)]) {
        self.waiting.set_parts(parts);
    }

    /// Returns the number of slots that the gate could use, beyond the slots that it holds.
    pub fn slots_to_request(&self, now: Moment) -> u64 {
        let Some(granted) = &self.granted else {
            return 0;
        };
        let usable = self.usable_costs(now).saturating_add(granted.debt);
        usable.saturating_sub(self.granted_slots(now))
    }

    /// Returns the demand, for the next claim.
    pub fn demand(&mut self, now: Moment) -> Demand {
        let keys = self.key_report();
        let slots = self.slots_to_request(now);
        if slots == 0 && self.usable_costs(now) == 0 {
            return Demand {
                keys,
                ..Demand::default()
            };
        }
        let is_fair = self.limits.queue.is_some();
        let waiting = self.waiting.weights().take(MAX_CLASSES);
        let waiting = waiting.map(|(class, keys, depth)| ClassDemand {
            class: class.hash(),
            weight: class.weight,
            keys: if is_fair { keys } else { depth as u64 },
        });
        let mut classes: Vec<ClassDemand> = waiting.collect();
        if classes.is_empty() {
            // Slots are needed only for requests whose sending failed, or for owed costs.
            classes.push(ClassDemand {
                class: 0,
                weight: 1,
                keys: 1,
            });
        }
        Demand {
            slots,
            classes,
            keys,
        }
    }

    /// Returns the cost of the waiters that could leave within [`GRANT_AHEAD`].
    ///
    /// No more can leave than permits become free by then, each with a waiter of the mean cost.
    fn usable_costs(&self, now: Moment) -> u64 {
        let begins = self.granted.as_ref().map_or(now, |granted| granted.from);
        if self.is_out() || self.opens.max(begins) > now {
            return 0;
        }
        let costs = self.outage.costs + self.waiting.costs();
        let permits = self.permits_within(GRANT_AHEAD, now);
        let requests = (self.depth() as u64).max(1);
        let mean_cost = costs.div_ceil(requests);
        costs.min(permits.saturating_mul(mean_cost))
    }

    /// Records a departure in a granted slot.
    ///
    /// Returns its instant. `None`: the gate has its own schedule.
    pub(super) fn depart_granted(&mut self, ready: Moment, cost: u64) -> Option<Moment> {
        let due = self.granted.as_mut()?.depart(ready, cost);
        self.before_last = None;
        self.last_departed = self.rate.map(|rate| Departed::new(rate, due, cost));
        Some(due)
    }
}
