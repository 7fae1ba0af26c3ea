use std::io;

use super::hours::Class;
use super::keys::{Ended, Keys};
use super::order::Order;
use super::spool::{Event, Spool};
use super::windows::{Counts, Spreads, Window};
use crate::limit::Moment;
use crate::replay::{Join, Timeline};

/// How many keys are shown.
const SHOWN: usize = 5;

/// The resolution of a log's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resolution {
    /// Whole seconds: requests within one second count as if they came at once.
    Second,
    /// Milliseconds.
    Millisecond,
    /// Finer than milliseconds.
    Finer,
}

impl Resolution {
    /// The coarsest that has this time.
    pub(super) fn of(time: u64) -> Self {
        match time {
            _ if time.is_multiple_of(1_000_000_000) => Self::Second,
            _ if time.is_multiple_of(1_000_000) => Self::Millisecond,
            _ => Self::Finer,
        }
    }
}

/// The keys that are judged together, and their requests.
pub(super) struct Group {
    keys: Keys,
    order: Order<(u32, Class)>,
    tally: Tally,
}

/// Counts requests that are in order.
struct Tally {
    spool: Spool,
    failure: Option<io::Error>,
    of_all: Counts,
    all: Spreads,
    each: Spreads,
    peaks: Timeline<2>,
    resolution: Resolution,
    first: Option<u64>,
    last: u64,
}

/// What was counted of a group.
pub(super) struct Counted {
    pub(super) spool: Spool,
    pub(super) slots: usize,
    pub(super) keys: Ended,
    /// Windows of all keys together; `each` has those of each key.
    pub(super) all: Spreads,
    pub(super) each: Spreads,
    /// The highest counts within a second: of all keys together, and of one key.
    pub(super) peaks: Timeline<2>,
    pub(super) resolution: Resolution,
    pub(super) first: Moment,
    pub(super) last: Moment,
    /// How many requests could not be put into order.
    pub(super) late: u64,
    /// The most good requests a second of one key, where some keys were set aside.
    peak: Option<u64>,
}

impl Group {
    /// A group with at most `most_keys` keys at once.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no room for temporary files.
    pub(super) fn new(most_keys: usize) -> io::Result<Self> {
        Ok(Self {
            keys: Keys::new(most_keys),
            order: Order::new(),
            tally: Tally {
                spool: Spool::new()?,
                failure: None,
                of_all: Counts::default(),
                all: Spreads::new(),
                each: Spreads::new(),
                peaks: Timeline::new(1_000_000_000, [Join::Peak; 2]),
                resolution: Resolution::Second,
                first: None,
                last: 0,
            },
        })
    }

    /// The slot of a key, which becomes the most recently used one.
    pub(super) fn slot(&mut self, key: &[u8]) -> u32 {
        self.keys.slot(key, |window| self.tally.end_of(window))
    }

    /// The number of slots.
    pub(super) fn slots(&self) -> usize {
        self.keys.slots()
    }

    /// Counts a request of the key in `slot`.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no more room for temporary files.
    pub(super) fn count(&mut self, time: u64, slot: u32, class: Class) -> io::Result<()> {
        let (tally, keys) = (&mut self.tally, &mut self.keys);
        self.order
            .put(time, (slot, class), |time, of| tally.count(time, of, keys));
        self.tally.failure.take().map_or(Ok(()), Err)
    }

    pub(super) fn end(mut self) -> io::Result<Counted> {
        let (tally, keys) = (&mut self.tally, &mut self.keys);
        self.order.end(|time, of| tally.count(time, of, keys));
        if let Some(failure) = tally.failure.take() {
            return Err(failure);
        }
        let (all, peaks) = (&mut tally.all, &mut tally.peaks);
        tally.of_all.end(|window| {
            if window.width == 0 {
                peaks.put(window.begin, 0, window.count.into());
            }
            all.add(window);
        });
        let slots = self.keys.slots();
        let keys = self.keys.end(SHOWN, |window| tally.end_of(window));
        tally.spool.end()?;
        let Tally {
            spool,
            all,
            each,
            peaks,
            resolution,
            first,
            last,
            ..
        } = self.tally;
        Ok(Counted {
            spool,
            slots,
            keys,
            all,
            each,
            peaks,
            resolution,
            first: Moment::from_nanos(first.unwrap_or_default()),
            last: Moment::from_nanos(last),
            late: self.order.late(),
            peak: None,
        })
    }
}

impl Tally {
    /// Records a key's window that has ended.
    fn end_of(&mut self, window: Window) {
        if window.width == 0 {
            self.peaks.put(window.begin, 1, window.count.into());
        }
        self.each.add(window);
    }

    fn count(&mut self, time: u64, (slot, class): (u32, Class), keys: &mut Keys) {
        self.resolution = self.resolution.max(Resolution::of(time));
        self.first.get_or_insert(time);
        self.last = time;
        let (all, peaks) = (&mut self.all, &mut self.peaks);
        self.of_all.add(time, class, |window| {
            if window.width == 0 {
                peaks.put(window.begin, 0, window.count.into());
            }
            all.add(window);
        });
        let is_first = keys.count(slot, time, class, |window| self.end_of(window));
        let event = Event {
            time,
            slot,
            is_first,
            class,
        };
        if let Err(failure) = self.spool.put(event) {
            self.failure.get_or_insert(failure);
        }
    }
}

impl Counted {
    /// The number of requests.
    pub(super) fn requests(&self) -> u64 {
        self.spool.len()
    }

    /// The most requests a second of one key in hours of this class.
    pub(super) fn peak(&self, class: Class) -> u64 {
        match (class, self.peak) {
            (Class::Good, Some(peak)) => peak,
            _ => self.each.of(class, 0).peak(),
        }
    }

    /// Makes no number for the keys in these slots. Of the others, none comes more than `peak`
    /// times in a second.
    pub(super) fn set_aside(&mut self, slots: Vec<u32>, peak: u32) {
        self.spool.set_aside(slots);
        self.peak = Some(peak.into());
    }
}
