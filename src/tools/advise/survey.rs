use std::collections::BTreeSet;
use std::io;

use super::hours::{Class, Hours};
use super::keys::{Ended, Keys};
use super::order::Order;
use super::origin_load::OriginLoad;
use super::spool::{Event, Spool};
use super::windows::{Counts, Spreads, Window};
use crate::config::KeyTemplate;
use crate::limit::Moment;
use crate::tools::replay::{Form, Join, Line, Timeline, add_to_key, remembered};

/// Prefix length to which IPv6 addresses in keys are cut, the default of a zone.
const IPV6_PREFIX: u8 = 64;

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

/// Reads requests and counts them.
pub struct Survey {
    hours: Hours,
    template: KeyTemplate,
    zone: Option<String>,
    /// Buffer for the key of the current request.
    key: Vec<u8>,
    untold: BTreeSet<String>,
    keyless: u64,
    keys: Keys,
    order: Order<Item>,
    tally: Tally,
    load: OriginLoad,
    /// How many seconds the clock of the first line is ahead of UTC.
    ///
    /// `clock` is that of the last line: it changes with daylight saving time.
    ahead: Option<i32>,
    clock: i32,
    form: Option<Form>,
}

/// A request that waits to be counted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Item {
    slot: u32,
    class: Class,
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

/// The results of a survey.
pub(super) struct Surveyed {
    pub(super) hours: Hours,
    pub(super) template: KeyTemplate,
    pub(super) zone: Option<String>,
    pub(super) spool: Spool,
    pub(super) slots: usize,
    pub(super) keys: Ended,
    /// Windows of all keys together; `each` has those of each key.
    pub(super) all: Spreads,
    pub(super) each: Spreads,
    /// The highest counts within a second: of all keys together, and of one key.
    pub(super) peaks: Timeline<2>,
    /// What all requests of the good hours are to the origin, with a key or without.
    pub(super) load: OriginLoad,
    pub(super) resolution: Resolution,
    pub(super) first: Moment,
    pub(super) last: Moment,
    pub(super) untold: BTreeSet<String>,
    pub(super) keyless: u64,
    /// How many requests could not be put into order.
    pub(super) late: u64,
    /// How many seconds the log's clock is ahead of UTC, at the start and at the end of the log.
    pub(super) ahead: [i32; 2],
    pub(super) form: Option<Form>,
}

impl Survey {
    /// Starts a survey with keys made from `template`, with at most `most_keys` keys at once.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no room for temporary files.
    pub fn new(template: KeyTemplate, hours: Hours, most_keys: usize) -> io::Result<Self> {
        Ok(Self {
            hours,
            template,
            zone: None,
            key: Vec::new(),
            untold: BTreeSet::new(),
            keyless: 0,
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
            load: OriginLoad::default(),
            ahead: None,
            clock: 0,
            form: None,
        })
    }

    /// Takes the keys that the gateway logged for a zone.
    ///
    /// Requests that another zone decided are left out.
    #[must_use]
    pub fn of_zone(mut self, zone: Option<String>) -> Self {
        self.zone = zone;
        self
    }

    /// The variables of the key that the logs do not contain.
    #[must_use]
    pub fn untold(&self) -> Vec<String> {
        self.untold.iter().map(|name| format!("${name}")).collect()
    }

    /// Whether no request has had a key.
    #[must_use]
    pub fn is_keyless(&self) -> bool {
        self.keys.slots() == 0
    }

    /// The time of a request and what to count, or `None` if it has no key and so is not limited.
    pub(super) fn key(&mut self, line: &Line) -> Option<(u64, Item)> {
        let ahead = line.recorded.as_ref().map(|recorded| recorded.ahead);
        self.ahead = self.ahead.or(ahead);
        let clock = ahead.or(self.ahead).unwrap_or_default();
        if self.clock != clock {
            self.clock = clock;
            self.hours.set_clock(clock);
        }
        if self.hours.class(line.time) == Class::Good {
            self.load.add(line);
        }
        self.key.clear();
        match (&line.key, &line.recorded) {
            (Some(key), _) => self.key.extend_from_slice(key),
            (None, Some(recorded)) if self.zone.is_some() => {
                if let Some((zone, key)) = &recorded.keyed
                    && self.zone.as_deref() == Some(zone)
                {
                    self.key.extend_from_slice(key.as_bytes());
                }
            }
            (None, Some(recorded)) => {
                let untold = &mut self.untold;
                self.template.fill_into(&mut self.key, |variable, key| {
                    if !add_to_key(key, variable, IPV6_PREFIX, line, recorded) {
                        let name = variable.to_string();
                        if !untold.contains(&name) {
                            untold.insert(name);
                        }
                    }
                });
            }
            (None, None) => {}
        }
        if self.key.is_empty() {
            self.keyless += 1;
            return None;
        }
        let key = remembered(&self.key);
        let slot = self.keys.slot(&key, |window| self.tally.end_of(window));
        let class = self.hours.meet(line.time);
        Some((line.time.as_nanos(), Item { slot, class }))
    }

    /// Sets the format of the lines. Only the first known format is kept.
    pub(super) fn set_form(&mut self, form: Option<Form>) {
        self.form = self.form.or(form);
    }

    /// Counts a request.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no more room for temporary files.
    pub(super) fn count(&mut self, time: u64, item: Item) -> io::Result<()> {
        self.load.pass(time);
        let (tally, keys) = (&mut self.tally, &mut self.keys);
        self.order
            .put(time, item, |time, item| tally.count(time, item, keys));
        self.tally.failure.take().map_or(Ok(()), Err)
    }

    pub(super) fn end(mut self) -> io::Result<Surveyed> {
        self.load.end();
        let (tally, keys) = (&mut self.tally, &mut self.keys);
        self.order.end(|time, item| tally.count(time, item, keys));
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
        let begin = self.ahead.unwrap_or_default();
        self.hours.set_clock(begin);
        Ok(Surveyed {
            hours: self.hours,
            template: self.template,
            zone: self.zone,
            spool,
            slots,
            keys,
            all,
            each,
            peaks,
            load: self.load,
            resolution,
            first: Moment::from_nanos(first.unwrap_or_default()),
            last: Moment::from_nanos(last),
            untold: self.untold,
            keyless: self.keyless,
            late: self.order.late(),
            ahead: [begin, self.clock],
            form: self.form,
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

    fn count(&mut self, time: u64, Item { slot, class }: Item, keys: &mut Keys) {
        let fine = match time {
            _ if time.is_multiple_of(1_000_000_000) => Resolution::Second,
            _ if time.is_multiple_of(1_000_000) => Resolution::Millisecond,
            _ => Resolution::Finer,
        };
        self.resolution = self.resolution.max(fine);
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

impl Surveyed {
    /// The most requests a second of one key in hours of this class.
    pub(super) fn peak(&self, class: Class) -> u64 {
        self.each.of(class, 0).peak()
    }
}
