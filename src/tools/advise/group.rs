//! The keys of a log, and their requests.

use std::io;

use limit::Moment;

use super::keys::Keys;
use super::spool::{Event, Spool};

/// The keys of a log, and their requests.
pub(super) struct Group {
    pub(super) keys: Keys,
    pub(super) spool: Spool,
    first: Option<u64>,
    last: u64,
    /// Whether each time is a whole second.
    pub(super) is_coarse: bool,
}

impl Group {
    /// Creates a group that remembers at most `most_keys` keys at once.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no room for temporary files.
    pub(super) fn new(most_keys: usize) -> io::Result<Self> {
        Ok(Self {
            keys: Keys::new(most_keys),
            spool: Spool::new()?,
            first: None,
            last: 0,
            is_coarse: true,
        })
    }

    /// Counts a request of the key in `slot`. Requests must be in order of time.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no more room for temporary files.
    pub(super) fn count(&mut self, time: u64, slot: u32) -> io::Result<()> {
        self.is_coarse &= time.is_multiple_of(1_000_000_000);
        self.first.get_or_insert(time);
        self.last = time;
        let is_first = self.keys.count(slot);
        self.spool.put(Event {
            time,
            slot,
            is_first,
        })
    }

    /// Returns the time of the first and of the last request.
    pub(super) fn span(&self) -> (Moment, Moment) {
        let [first, last] = [self.first.unwrap_or_default(), self.last].map(Moment::from_nanos);
        (first, last)
    }

    /// Returns the number of requests.
    pub(super) fn requests(&self) -> u64 {
        self.spool.count
    }
}
