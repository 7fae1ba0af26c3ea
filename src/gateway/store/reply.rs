//! Replies of the scripts in Redis to calls for keys of zones, read from their packed form.
//!
//! A call (`calls`) has several keys, and entries for each. The reply has a result for each entry.
//! [`Packed`] also reads the replies of the other scripts.

use limit::{Cost, Moment, to_whole};
use smallvec::SmallVec;

use super::Error;
use super::calls::Call;
use super::operation::{ScriptCommand, from_micros};

/// First byte of the part about a key: the key is used for something else, and nothing was done.
pub(super) const TAKEN: u8 = 0;
/// First byte of the part about a key: the caller's rate is in force.
pub(super) const OWN_RATE: u8 = 1;
/// First byte of the part about a key: another rate is in force, which follows.
pub(super) const OTHER_RATE: u8 = 2;
/// First byte of the reply of a script without rates: the call was carried out.
pub(super) const DONE: u8 = 1;
/// As [`DONE`], but nothing was done: a later call came before, or there are too many gateways.
pub(super) const TOO_LATE: u8 = 2;

/// Reply to a call.
#[derive(Debug, PartialEq)]
pub(super) struct Reply {
    /// Time at which the script ran, on Redis's clock.
    pub(super) now: Moment,
    /// Result for each key; an error if the key is used for something else, and nothing was done.
    pub(super) keys: Vec<Result<KeyReply, Error>>,
}

/// Result of the operations on one key.
#[derive(Debug, PartialEq)]
pub(super) struct KeyReply {
    /// Rate in force as text, if it is not the caller's.
    pub(super) other_rate: Option<String>,
    /// Time since which the rate is in force; `None`: always.
    pub(super) since: Option<Moment>,
    /// Result for each entry of the key.
    pub(super) entries: SmallVec<[EntryReply; 1]>,
}

/// Result of equal operations on one key.
#[derive(Debug, Default, PartialEq)]
pub(super) struct EntryReply {
    /// Number of equal operations that were carried out: the first ones, if not all.
    pub(super) done_count: u32,
    /// Findings of a join. `scripts/*.lua` define them for each algorithm.
    pub(super) findings: [u64; 4],
    /// Free slots that the first operations took.
    pub(super) free_slots: Vec<u64>,
}

/// Result of one operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct OperationReply<'r> {
    /// Time at which the script ran, on Redis's clock.
    pub(super) now: Moment,
    /// Result of all operations on the key.
    pub(super) key: &'r KeyReply,
    /// Result of this operation and of equal ones.
    pub(super) entry: &'r EntryReply,
    /// Number of equal operations before this one in the entry.
    pub(super) nth: u32,
}

impl OperationReply<'_> {
    /// Returns whether the operation was carried out.
    pub(super) fn is_done(&self) -> bool {
        self.nth < self.entry.done_count
    }

    /// Returns the sum of the charges of the accepted equal joins before this one, of this cost.
    pub(super) fn charged_before(&self, cost: Cost) -> u64 {
        u64::from(self.nth.min(self.entry.done_count)) * u64::from(cost.get())
    }
}

impl Reply {
    /// Reads a reply; `None` if it is not a reply to this call.
    pub(super) fn read(call: &Call<'_>, packed: &[u8]) -> Option<Self> {
        let mut rest = Packed(packed);
        let now = rest.moment()?;
        let mut keys = Vec::with_capacity(call.keys.len());
        for entries in call.entries() {
            keys.push(rest.key(call.command, entries)?);
        }
        rest.0.is_empty().then_some(Self { now, keys })
    }
}

/// Rest of a packed reply, little-endian.
pub(super) struct Packed<'a>(pub(super) &'a [u8]);

impl Packed<'_> {
    /// Reads the next `N` bytes.
    pub(super) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    /// Reads a length of two bytes.
    pub(super) fn length(&mut self) -> Option<usize> {
        self.take().map(u16::from_le_bytes).map(usize::from)
    }

    /// Reads a finite number.
    pub(super) fn number(&mut self) -> Option<f64> {
        Some(f64::from_le_bytes(self.take()?)).filter(|number| number.is_finite())
    }

    /// Reads a whole number, which the scripts keep as a double.
    pub(super) fn whole(&mut self) -> Option<u64> {
        /// Doubles up to this one, 2^53, are exact.
        const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
        let number = self.number()?;
        let is_whole = (0.0..=MAX_EXACT).contains(&number) && number.fract() == 0.0;
        is_whole.then(|| to_whole(number))
    }

    /// Reads a whole number as a count in memory.
    pub(super) fn count(&mut self) -> Option<usize> {
        usize::try_from(self.whole()?).ok()
    }

    /// Reads an instant in whole microseconds.
    pub(super) fn moment(&mut self) -> Option<Moment> {
        self.whole().map(from_micros)
    }

    /// Reads a text with its length before it.
    pub(super) fn text(&mut self) -> Option<String> {
        let length = self.length()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    /// Reads the result for one key with this number of entries.
    fn key(&mut self, command: ScriptCommand, entries: usize) -> Option<Result<KeyReply, Error>> {
        let [state] = self.take()?;
        if state == TAKEN {
            return Some(Err(Error::key_taken()));
        }
        let since = self.moment()?;
        let other_rate = match state {
            OWN_RATE => None,
            OTHER_RATE => Some(self.text()?),
            _ => return None,
        };
        let entries = (0..entries).map(|_| self.entry(command));
        Some(Ok(KeyReply {
            entries: entries.collect::<Option<_>>()?,
            other_rate,
            since: Some(since).filter(|since| *since > Moment::default()),
        }))
    }

    /// Reads the result of equal operations on a key.
    fn entry(&mut self, command: ScriptCommand) -> Option<EntryReply> {
        let mut entry = EntryReply {
            done_count: u32::from_le_bytes(self.take()?),
            ..EntryReply::default()
        };
        if command == ScriptCommand::Join {
            for finding in &mut entry.findings {
                *finding = self.whole()?;
            }
            let count = self.length()?;
            entry.free_slots = (0..count).map(|_| self.whole()).collect::<Option<_>>()?;
        }
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::calls::Calls;
    use super::super::grid::ClaimReply;
    use super::super::operation::Operation;
    use super::super::{Retune, StoreRate, backoff, key_permits, permits};
    use super::*;
    use limit::Algorithm;

    /// Reads `packed` as a reply of each script.
    fn read_as_each(packed: &[u8]) {
        let rate = "1r/s".parse().unwrap();
        let pace = StoreRate::new(rate, Algorithm::LeakyBucket, Moment::default()).unwrap();
        // The command decides what is read, not the operation.
        let retune = Retune {
            key: b"key",
            pace: &pace,
        };
        let operations = [Operation::from(&retune)].into_iter();
        let calls = Calls::group(ScriptCommand::Join, operations, 1);
        let _read = Reply::read(&calls.calls[0], packed);
        let _read = ClaimReply::read(packed, rate);
        let _read = permits::read(packed);
        let _read = key_permits::read(packed, 2);
        let _read = backoff::read(packed);
    }

    proptest! {
        #![proptest_config(testing::config())]

        #[test]
        fn random_bytes_do_not_break_the_readers(packed in prop::collection::vec(any::<u8>(), 0..220)) {
            read_as_each(&packed);
            // The valid beginning of a reply, and that of a reply to a claim, then random bytes.
            for numbers in [&[1e15_f64][..], &[1e15, 2.0, 0.5, 1e15, 1e15]] {
                let mut reply: Vec<u8> = numbers.iter().flat_map(|it| it.to_le_bytes()).collect();
                reply.push(1);
                reply.extend(&packed);
                read_as_each(&reply);
            }
        }
    }
}
