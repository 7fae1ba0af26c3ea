//! A lane: the waiters of a queue that have the same `delay`, first in, first out.
//!
//! `delay` is the level of the bucket above which a request waits. The *tick line* is time in units
//! (*ticks*) of which `request` make the interval between two requests. The *tail* of a bucket is
//! the position on it at which the bucket is empty. See the parent module.

use std::collections::VecDeque;

use super::{Charge, Ticket};
use crate::bucket::rescale;
use crate::{Cost, Moment, Rate, more_room};

/// The waiters of a queue that have the same `delay`.
///
/// Each entry stores only its distance to the entry ahead, in whole requests. The distances are
/// exact: while a request waits the level is above zero, so each accepted request raises the tail
/// by exactly its cost. When a waiter leaves, its charge stays in the distances. If the charge is
/// refunded, the caller shrinks one distance ([`shift_behind`](Self::shift_behind)), which moves up
/// all waiters behind it. A new rate only moves the start of the lane. Both cost the same for any
/// length of the lane.
#[derive(Clone, Debug)]
pub(super) struct Lane<W> {
    pub delay: u32,
    /// Position on the tick line, in ticks, from which the first entry's distance is counted.
    start: i128,
    /// Sum of all distances, in requests: the last entry's tail is `start + length * request`.
    length: u64,
    entries: VecDeque<Entry<W>>,
    /// Number of entries whose waiter has left before it was due.
    removed: usize,
}

/// A request in the lane.
#[derive(Clone, Debug)]
struct Entry<W> {
    // `arrival`, `at` and `cost` are the request's `Charge`. As a struct, they would leave unused
    // bytes before `step`.
    arrival: u64,
    at: Moment,
    cost: Cost,
    /// Distance to the entry ahead, in requests: the cost of all charges in between.
    ///
    /// It includes the cost of the entry ahead.
    step: u32,
    /// `None`: the waiter has left before it was due.
    waiter: Option<(Ticket, W)>,
}

impl<W> Entry<W> {
    fn charge(&self) -> Charge {
        Charge {
            arrival: self.arrival,
            at: self.at,
            cost: self.cost,
        }
    }
}

impl<W> Lane<W> {
    pub(super) fn new(delay: u32, start: i128) -> Self {
        Self {
            delay,
            start,
            length: 0,
            entries: VecDeque::new(),
            removed: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn waiters(&self) -> impl Iterator<Item = &W> {
        let entries = self.entries.iter();
        entries.filter_map(|entry| Some(&entry.waiter.as_ref()?.1))
    }

    pub(super) fn waiters_mut(&mut self) -> impl Iterator<Item = &mut W> {
        let entries = self.entries.iter_mut();
        entries.filter_map(|entry| Some(&mut entry.waiter.as_mut()?.1))
    }

    /// Returns the position on the tick line at which the head leaves, and its arrival number.
    ///
    /// The head is the first entry. It always has a waiter.
    pub(super) fn head(&self, request: i128) -> Option<(i128, u64)> {
        let head = self.entries.front()?;
        let steps = i128::from(head.step) - i128::from(self.delay);
        Some((self.start + steps * request, head.arrival))
    }

    /// Returns the positions on the tick line at which the waiters leave.
    pub(super) fn positions(&self, request: i128) -> impl Iterator<Item = (i128, &W)> {
        let mut steps = -i128::from(self.delay);
        self.entries.iter().filter_map(move |entry| {
            steps += i128::from(entry.step);
            let (_, waiter) = entry.waiter.as_ref()?;
            Some((self.start + steps * request, waiter))
        })
    }

    /// Returns the instant at which the head joined. The head is the oldest waiter.
    pub(super) fn oldest(&self) -> Option<Moment> {
        self.entries.front().map(|head| head.at)
    }

    /// Returns the charges of the waiters, in their order.
    pub(super) fn charges(&self) -> impl Iterator<Item = Charge> {
        let waits = |entry: &&Entry<W>| entry.waiter.is_some();
        self.entries.iter().filter(waits).map(Entry::charge)
    }

    /// Returns the bucket's tail just before the head joined.
    pub(super) fn tail_before_head(&self, request: i128) -> i128 {
        let head = self.entries.front().map_or(0, |head| head.step);
        self.start + (i128::from(head) - 1) * request
    }

    /// Moves the lane to `start`, and each waiter to `rank(arrival)` requests behind `start`.
    ///
    /// Ranks are above zero and increase with `arrival`.
    pub(super) fn renumber(&mut self, start: i128, rank: impl Fn(u64) -> u64) {
        self.start = start;
        self.length = 0;
        self.entries.retain(|entry| entry.waiter.is_some());
        self.removed = 0;
        for entry in &mut self.entries {
            let step = rank(entry.arrival).saturating_sub(self.length);
            entry.step = u32::try_from(step).unwrap_or(u32::MAX);
            self.length += u64::from(entry.step);
        }
    }

    /// Returns whether a request that joined before `arrival` still waits here.
    pub(super) fn has_waiter_before(&self, arrival: u64) -> bool {
        let head = self.entries.front();
        head.is_some_and(|head| head.arrival < arrival)
    }

    /// Adds a waiter that leaves once the level has leaked from `tail` down to the lane's delay.
    pub(super) fn push(
        &mut self,
        tail: i128,
        request: i128,
        charge: Charge,
        ticket: Ticket,
        waiter: W,
    ) {
        debug_assert_eq!((tail - self.start) % request, 0, "whole requests apart");
        let step = (tail - self.start) / request - i128::from(self.length);
        debug_assert!(step > 0, "at least one request behind the last entry");
        let step = u32::try_from(step).unwrap_or(u32::MAX);
        self.length += u64::from(step);
        if self.entries.len() == self.entries.capacity() {
            self.entries.reserve_exact(more_room(self.entries.len()));
        }
        let Charge { arrival, at, cost } = charge;
        self.entries.push_back(Entry {
            arrival,
            at,
            cost,
            step,
            waiter: Some((ticket, waiter)),
        });
    }

    /// Removes the head.
    pub(super) fn pop(&mut self, request: i128) -> Option<(Charge, Ticket, W)> {
        let entry = self.entries.pop_front()?;
        self.advance(entry.step, request);
        self.trim(request);
        let charge = entry.charge();
        let (ticket, waiter) = entry.waiter?;
        Some((charge, ticket, waiter))
    }

    /// Returns the charge of the entry with this index.
    pub(super) fn charge(&self, index: usize) -> Charge {
        self.entries[index].charge()
    }

    /// Returns the index of the request with this arrival number, if it is in this lane.
    pub(super) fn index(&self, arrival: u64) -> Option<usize> {
        let arrival_of = |entry: &Entry<W>| entry.arrival;
        self.entries.binary_search_by_key(&arrival, arrival_of).ok()
    }

    /// Removes the waiter of the entry with this index. Its charge stays.
    pub(super) fn leave(&mut self, index: usize, request: i128) -> Option<W> {
        let entry = &mut self.entries[index];
        let (_, waiter) = entry.waiter.take()?;
        self.removed += 1;
        self.trim(request);
        Some(waiter)
    }

    /// Moves back the waiters that joined after `arrival`, by a number of requests.
    ///
    /// A negative number moves them up, at most to the entry ahead.
    pub(super) fn shift_behind(&mut self, arrival: u64, requests: i64, request: i128) {
        let behind = self.entries.partition_point(|it| it.arrival <= arrival);
        // The distances behind an entry follow from its own: only the first one changes.
        if behind == 0 {
            self.shift(i128::from(requests) * request);
        } else if let Some(entry) = self.entries.get_mut(behind) {
            let step = i64::from(entry.step).saturating_add(requests);
            let step = u32::try_from(step.max(0)).unwrap_or(u32::MAX);
            self.length = self.length - u64::from(entry.step) + u64::from(step);
            entry.step = step;
        }
    }

    /// Moves all waiters back by a number of ticks. A negative number moves them up.
    pub(super) fn shift(&mut self, ticks: i128) {
        self.start += ticks;
    }

    /// Converts the start of the lane to another rate.
    pub(super) fn retune(&mut self, from: Rate, to: Rate, now: Moment) {
        self.start = rescale(self.start, from, to, now);
    }

    /// Returns the number of entries in memory, including entries without a waiter.
    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        self.entries.len()
    }

    /// Moves the start past a removed first entry.
    fn advance(&mut self, step: u32, request: i128) {
        self.start += i128::from(step) * request;
        self.length -= u64::from(step);
    }

    /// Removes entries without a waiter: all at the ends, inner entries once they are the majority.
    ///
    /// So the head always has a waiter, and the number of waiters bounds the lane's memory.
    fn trim(&mut self, request: i128) {
        let is_removed = |entry: &Entry<W>| entry.waiter.is_none();
        while self.entries.front().is_some_and(is_removed)
            && let Some(first) = self.entries.pop_front()
        {
            self.removed -= 1;
            self.advance(first.step, request);
        }
        while self.entries.back().is_some_and(is_removed)
            && let Some(last) = self.entries.pop_back()
        {
            self.removed -= 1;
            self.length -= u64::from(last.step);
        }
        if self.removed > self.entries.len() / 2 {
            // The steps of removed entries are added to the next entry.
            let mut steps = 0;
            self.entries.retain_mut(|entry| {
                steps += entry.step;
                let waits = entry.waiter.is_some();
                if waits {
                    entry.step = std::mem::take(&mut steps);
                }
                waits
            });
            self.removed = 0;
        }
    }
}
