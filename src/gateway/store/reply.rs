//! Replies of scripts, read from their packed form.

use limit::{Moment, to_whole};
use smallvec::SmallVec;

use super::Error;
use super::calls::Call;
use super::operation::ScriptCommand;

/// Reply to a call.
#[derive(Debug, PartialEq)]
pub(super) struct Reply {
    /// Time at which the script ran, on its clock.
    pub(super) now: Moment,
    /// Result for each key; an error if the key is used for something else, and nothing was done.
    pub(super) keys: Vec<Result<Done, Error>>,
}

/// Result of the operations on one key.
#[derive(Debug, PartialEq)]
pub(super) struct Done {
    /// Rate in force as text, if it is not the caller's.
    pub(super) other_rate: Option<String>,
    /// Time since which the rate is in force; `None`: always.
    pub(super) since: Option<Moment>,
    pub(super) entries: SmallVec<[EntryReply; 1]>,
}

/// Result of equal operations on one key.
#[derive(Debug, Default, PartialEq)]
pub(super) struct EntryReply {
    /// Number of operations that were done. These are the first ones.
    pub(super) done: u32,
    /// Findings of a join, as the scripts document them.
    pub(super) found: [u64; 4],
    /// Free slots that the first operations took.
    pub(super) free: Vec<u64>,
}

impl Reply {
    /// Reads a reply; `None` if it is not a reply to this call.
    pub(super) fn read(call: &Call<'_>, packed: &[u8]) -> Option<Self> {
        let mut rest = Packed(packed);
        let now = rest.moment()?;
        let mut keys = Vec::with_capacity(call.keys.len());
        for entries in call.entries() {
            keys.push(rest.key(call.asked, entries)?);
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

    /// Reads a whole number, which the scripts keep as a double.
    pub(super) fn whole(&mut self) -> Option<u64> {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        let double = f64::from_le_bytes(self.take()?);
        let is_whole = (0.0..=EXACT).contains(&double) && double.fract() == 0.0;
        is_whole.then(|| to_whole(double))
    }

    /// Reads an instant in microseconds.
    pub(super) fn moment(&mut self) -> Option<Moment> {
        let micros = self.whole()?;
        Some(Moment::from_nanos(micros.saturating_mul(1000)))
    }

    /// Reads a text with its length before it.
    pub(super) fn text(&mut self) -> Option<String> {
        let length = self.length()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    /// Reads the result for one key.
    fn key(&mut self, asked: ScriptCommand, entries: usize) -> Option<Result<Done, Error>> {
        let [state] = self.take()?;
        if state == 0 {
            return Some(Err(Error::taken()));
        }
        let since = self.moment()?;
        let other_rate = match state {
            1 => None,
            2 => Some(self.text()?),
            _ => return None,
        };
        let read = (0..entries).map(|_| self.entry(asked));
        Some(Ok(Done {
            entries: read.collect::<Option<_>>()?,
            other_rate,
            since: Some(since).filter(|since| *since > Moment::default()),
        }))
    }

    /// Reads the result of equal operations on a key.
    fn entry(&mut self, asked: ScriptCommand) -> Option<EntryReply> {
        let mut entry = EntryReply {
            done: u32::from_le_bytes(self.take()?),
            ..EntryReply::default()
        };
        if asked == ScriptCommand::Join {
            for number in &mut entry.found {
                *number = self.whole()?;
            }
            let free = self.length()?;
            entry.free = (0..free).map(|_| self.whole()).collect::<Option<_>>()?;
        }
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::calls::Calls;
    use super::super::operation::Operation;
    use super::super::{Join, StoreRate};
    use super::*;
    use limit::{Algorithm, Cost, Delay, Limit};

    proptest! {
        #![proptest_config(testing::config())]

        #[test]
        fn random_bytes_do_not_break_the_reader(packed in prop::collection::vec(any::<u8>(), 0..120)) {
            let rate = "1r/s".parse().unwrap();
            let pace = StoreRate::new(rate, Algorithm::LeakyBucket, Moment::default()).unwrap();
            let join = Join {
                key: b"key",
                algorithm: Algorithm::LeakyBucket,
                pace: &pace,
                limit: Limit::unlimited(Delay::Never, Cost::ONE),
                at: None,
            };
            let joins = [join];
            let joins = joins.iter().map(Operation::from);
            let calls = Calls::of(ScriptCommand::Join, joins, 1);
            let _read = Reply::read(&calls.calls[0], &packed);
            // A reply with few entries, followed by random bytes.
            let mut reply = 1e15_f64.to_le_bytes().to_vec();
            reply.push(1);
            reply.extend(packed);
            let _read = Reply::read(&calls.calls[0], &reply);
        }
    }
}
