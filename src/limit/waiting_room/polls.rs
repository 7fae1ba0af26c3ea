use std::time::Duration;

use crate::Moment;

/// How many waiting visitors are remembered: the first in line.
pub(super) const REMEMBERED: usize = 1 << 16;
/// One poll more than `Retry-After` asked for is allowed in this time.
const EARLY_INTERVAL: Duration = Duration::from_secs(15);
/// How many of those at once.
const EARLY_BURST: u32 = 4;
/// How much a clock of a visitor may be fast, and a response slow.
const TOLERANCE: Duration = Duration::from_secs(1);

/// When each visitor near the front was told to ask again, and how often it asked too early.
///
/// One slot for each number, by its last bits, so that it stays small whoever waits. A visitor
/// further back has a slot while no one before it needs it.
#[derive(Debug, Default)]
pub(super) struct Polls {
    /// Empty until somebody waits.
    slots: Box<[Slot]>,
    /// The latest moment that was told to anyone who has no slot.
    unknown: Moment,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// 0: nobody's.
    number: u64,
    due: Moment,
    /// When the visitor has all its early polls again.
    early: Moment,
}

impl Polls {
    fn slot(&mut self, number: u64) -> &mut Slot {
        if self.slots.is_empty() {
            self.slots = vec![Slot::default(); REMEMBERED].into();
        }
        let index = usize::try_from(number % REMEMBERED as u64).unwrap_or(0);
        &mut self.slots[index]
    }

    fn known(&self, number: u64) -> Option<&Slot> {
        let index = usize::try_from(number % REMEMBERED as u64).unwrap_or(0);
        self.slots.get(index).filter(|slot| slot.number == number)
    }

    /// Nobody's next poll is known, and none is later than this.
    pub(super) fn forget(&mut self, latest: Moment) {
        *self = Self {
            unknown: latest,
            ..Self::default()
        };
    }

    /// Whether a visitor has asked since the room remembers.
    pub(super) fn has(&self, number: u64) -> bool {
        self.known(number).is_some()
    }

    /// When a visitor was told to ask again, or the latest moment at which it may have been.
    pub(super) fn due(&self, number: u64) -> Moment {
        self.known(number).map_or(self.unknown, |slot| slot.due)
    }

    /// Records a poll. Returns `Err` with the moment that was told if it is one too many before it.
    pub(super) fn poll(&mut self, number: u64, now: Moment) -> Result<(), Moment> {
        let Some(known) = self.known(number).copied() else {
            return Ok(());
        };
        if now + TOLERANCE >= known.due {
            return Ok(());
        }
        let early = known.early.max(now) + EARLY_INTERVAL;
        if early > now + EARLY_INTERVAL * EARLY_BURST {
            return Err(known.due);
        }
        self.slot(number).early = early;
        Ok(())
    }

    /// Records what a visitor is told. `is_behind`: whether another number needs its slot less.
    pub(super) fn tell(&mut self, number: u64, due: Moment, is_behind: impl FnOnce(u64) -> bool) {
        let slot = self.slot(number);
        if slot.number == number {
            slot.due = due;
            return;
        }
        let before = *slot;
        if before.number == 0 || is_behind(before.number) {
            *slot = Slot {
                number,
                due,
                early: Moment::default(),
            };
            self.unknown = self.unknown.max(before.due);
        } else {
            self.unknown = self.unknown.max(due);
        }
    }
}
