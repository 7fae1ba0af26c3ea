use std::io;

use super::hours::Class;
use super::keys::{Ended, Keys};
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
    counted: Counted,
}

/// What is counted of a group, of requests in order.
pub(super) struct Counted {
    pub(super) spool: Spool,
    /// The keys, once all requests are counted.
    pub(super) keys: Ended,
    /// The windows of all keys together that have not ended.
    of_all: Counts,
    /// Windows of all keys together; `each` has those of each key.
    pub(super) all: Spreads,
    pub(super) each: Spreads,
    /// The highest counts within a second: of all keys together, and of one key.
    pub(super) peaks: Timeline<2>,
    pub(super) resolution: Resolution,
    first: Option<u64>,
    last: u64,
    /// The most good requests a second of one key, where some keys were set aside.
    peak: Option<u64>,
}

impl Group {
    /// A group that may have `least_keys` keys at once however many the others have.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no room for temporary files.
    pub(super) fn new(least_keys: usize) -> io::Result<Self> {
        Ok(Self {
            keys: Keys::new(least_keys),
            counted: Counted {
                spool: Spool::new()?,
                keys: Ended::default(),
                of_all: Counts::default(),
                all: Spreads::new(),
                each: Spreads::new(),
                peaks: Timeline::new(1_000_000_000, [Join::Peak; 2]),
                resolution: Resolution::Second,
                first: None,
                last: 0,
                peak: None,
            },
        })
    }

    /// The slot of a key, which becomes the most recently used one.
    ///
    /// `has_room`: whether all groups together may have one more key.
    pub(super) fn slot(&mut self, key: &[u8], has_room: bool) -> u32 {
        self.keys
            .slot(key, has_room, |window| self.counted.end_of(window))
    }

    /// The number of its keys that are known now.
    pub(super) fn known(&self) -> usize {
        self.keys.slots()
    }

    /// Whether no request had one of its keys.
    pub(super) fn is_empty(&self) -> bool {
        self.known() == 0
    }

    /// Counts a request of the key in `slot`. Requests come in order of time.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no more room for temporary files.
    pub(super) fn count(&mut self, time: u64, slot: u32, class: Class) -> io::Result<()> {
        self.counted.count(time, slot, class, &mut self.keys)
    }

    pub(super) fn end(mut self) -> io::Result<Counted> {
        let counted = &mut self.counted;
        let (all, peaks) = (&mut counted.all, &mut counted.peaks);
        counted.of_all.end(|window| end_of_all(window, all, peaks));
        counted.spool.end(self.keys.slots())?;
        counted.keys = self.keys.end(SHOWN, |window| counted.end_of(window));
        Ok(self.counted)
    }
}

/// Records a window of all keys together that has ended.
fn end_of_all(window: Window, all: &mut Spreads, peaks: &mut Timeline<2>) {
    if window.width == 0 {
        peaks.put(window.begin, 0, window.count.into());
    }
    all.add(window);
}

impl Counted {
    /// Records a key's window that has ended.
    fn end_of(&mut self, window: Window) {
        if window.width == 0 {
            self.peaks.put(window.begin, 1, window.count.into());
        }
        self.each.add(window);
    }

    fn count(&mut self, time: u64, slot: u32, class: Class, keys: &mut Keys) -> io::Result<()> {
        self.resolution = self.resolution.max(Resolution::of(time));
        self.first.get_or_insert(time);
        self.last = time;
        let (all, peaks) = (&mut self.all, &mut self.peaks);
        let over = |window| end_of_all(window, all, peaks);
        self.of_all.add(time, class, over);
        let is_first = keys.count(slot, time, class, |window| self.end_of(window));
        self.spool.put(Event {
            time,
            slot,
            is_first,
            class,
        })
    }

    /// The time of the first request, and of the last one.
    pub(super) fn span(&self) -> (Moment, Moment) {
        let [first, last] = [self.first.unwrap_or_default(), self.last].map(Moment::from_nanos);
        (first, last)
    }

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
