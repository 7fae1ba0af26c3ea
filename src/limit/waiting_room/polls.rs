//! Polls: when each waiting visitor near the front may poll next.
//!
//! The answer to a visitor's poll says when to poll again (`Retry-After`). A visitor may poll
//! earlier a few times (*early polls*). More are rejected.

use std::time::Duration;

use crate::Moment;

/// Number of waiting visitors that are remembered: the first in the queue.
pub(super) const REMEMBERED: usize = 1 << 16;
/// Period after which a visitor may make one more early poll.
const EARLY_INTERVAL: Duration = Duration::from_secs(15);
/// Number of early polls that are accepted at once.
const EARLY_BURST: u32 = 4;
/// Tolerance for a fast clock of a visitor, and for a slow response.
const TOLERANCE: Duration = Duration::from_secs(1);

/// Due time of the next poll of each visitor near the front, and a budget of early polls.
///
/// A visitor is known by the number that it drew. The last bits of the number select its entry, so
/// the memory is bounded. Of several visitors with the same entry, the visitor furthest ahead has
/// it.
#[derive(Debug, Default)]
pub(super) struct Polls {
    /// Empty until a visitor waits.
    entries: Box<[PollEntry]>,
    /// Latest due time of any visitor without an entry.
    unknown: Moment,
}

#[derive(Clone, Copy, Debug, Default)]
struct PollEntry {
    /// Number of the visitor; 0: the entry is free.
    number: u64,
    /// Instant from which the next poll is not early.
    due: Moment,
    /// Instant at which the visitor has its whole budget of early polls again.
    early: Moment,
}

impl Polls {
    /// Returns the entry of a number, which may belong to another number.
    fn entry(&mut self, number: u64) -> &mut PollEntry {
        if self.entries.is_empty() {
            self.entries = vec![PollEntry::default(); REMEMBERED].into();
        }
        &mut self.entries[index(number)]
    }

    /// Returns the entry of a visitor, if the visitor has one.
    fn known(&self, number: u64) -> Option<&PollEntry> {
        let entry = self.entries.get(index(number));
        entry.filter(|entry| entry.number == number)
    }

    /// Forgets all visitors. `latest` is the upper bound of their due times.
    pub(super) fn forget(&mut self, latest: Moment) {
        *self = Self {
            unknown: latest,
            ..Self::default()
        };
    }

    /// Returns whether the visitor with this number has polled and is remembered.
    pub(super) fn has_polled(&self, number: u64) -> bool {
        self.known(number).is_some()
    }

    /// Returns the due time of a visitor's next poll, or its upper bound.
    pub(super) fn due(&self, number: u64) -> Moment {
        self.known(number).map_or(self.unknown, |entry| entry.due)
    }

    /// Records a poll. Returns `Err` with the due time if there were too many polls before it.
    pub(super) fn poll(&mut self, number: u64, now: Moment) -> Result<(), Moment> {
        let Some(known) = self.known(number).copied() else {
            return Ok(());
        };
        if now + TOLERANCE >= known.due {
            return Ok(());
        }
        // Each early poll uses an interval of the budget.
        let early = known.early.max(now) + EARLY_INTERVAL;
        if early > now + EARLY_INTERVAL * EARLY_BURST {
            return Err(known.due);
        }
        self.entry(number).early = early;
        Ok(())
    }

    /// Records the due time of a visitor's next poll.
    ///
    /// `is_behind` returns whether another number needs the entry less.
    pub(super) fn answer(&mut self, number: u64, due: Moment, is_behind: impl FnOnce(u64) -> bool) {
        let entry = self.entry(number);
        if entry.number == number {
            entry.due = due;
            return;
        }
        let before = *entry;
        if before.number == 0 || is_behind(before.number) {
            *entry = PollEntry {
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

/// Returns the index of a number's entry.
fn index(number: u64) -> usize {
    usize::try_from(number % REMEMBERED as u64).unwrap_or(0)
}
