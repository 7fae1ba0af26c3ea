//! Groups operations on keys into calls of scripts in Redis.
//!
//! An *operation* (`operation`) is a join, a refund or another change of one key. One call is for
//! many keys. Equal operations on a key are one *entry* with a count. `reply` reads the reply.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use limit::{Algorithm, Moment};
use smallvec::SmallVec;

use super::StoreRate;
use super::operation::{Entry, Operation, ScriptCommand, at_or_now, micros};

/// Upper bound of the keys in a call of a script. Redis does nothing else during a call.
pub(super) const MAX_KEYS: usize = 64;
/// Upper bound of the operations on one key in a call.
const MAX_ENTRIES: usize = 1024;

/// Operations in order, grouped into as few calls as possible.
///
/// A key occurs once in a call, however many operations it has there.
pub(super) struct Calls<'a> {
    pub(super) calls: Vec<Call<'a>>,
    /// Location of each operation in the calls, in the order of the operations.
    pub(super) locations: Vec<OperationLocation>,
}

/// Operations of the same kind on keys of the same algorithm and rate.
pub(super) struct Call<'a> {
    pub(super) command: ScriptCommand,
    pub(super) algorithm: Algorithm,
    pace: &'a StoreRate,
    /// Time of the operations. `None` means now, on Redis's clock.
    at: Option<Moment>,
    pub(super) keys: Vec<&'a [u8]>,
    /// Entries of each key, each after the number of equal operations.
    entries: Vec<SmallVec<[(u32, Entry); 1]>>,
}

/// Location of an operation in the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OperationLocation {
    /// Index of the call.
    pub(super) call: usize,
    /// Index of the key in the call.
    pub(super) key: usize,
    /// Index of the entry of the key.
    pub(super) entry: usize,
    /// Number of equal operations before it in the entry.
    pub(super) nth: u32,
}

impl<'a> Calls<'a> {
    /// Groups `operations` into calls with at most `max_keys` keys each.
    ///
    /// Operations on the same key keep their order.
    pub(super) fn group(
        command: ScriptCommand,
        operations: impl ExactSizeIterator<Item = Operation<'a>>,
        max_keys: usize,
    ) -> Self {
        let mut grouped = Self {
            calls: Vec::new(),
            locations: Vec::with_capacity(operations.len()),
        };
        // The location of each key's last operation.
        let mut last_of_key: HashMap<&[u8], OperationLocation, RandomState> =
            HashMap::with_capacity_and_hasher(operations.len(), RandomState::default());
        for operation in operations {
            let last = last_of_key.get(operation.key).copied();
            let location = grouped.add(command, operation, last, max_keys);
            last_of_key.insert(operation.key, location);
            grouped.locations.push(location);
        }
        grouped
    }

    /// Adds an operation. `last`: location of the last operation on the same key.
    fn add(
        &mut self,
        command: ScriptCommand,
        operation: Operation<'a>,
        last: Option<OperationLocation>,
        max_keys: usize,
    ) -> OperationLocation {
        if let Some(last) = last {
            let call = &mut self.calls[last.call];
            if call.is_for(&operation)
                && let Some((entry, nth)) = call.add_to_key(last.key, operation.entry)
            {
                return OperationLocation { entry, nth, ..last };
            }
        }
        // A call before the key's last one would change the order of the key's operations.
        let first_usable = last.map_or(0, |last| last.call + 1);
        let has_room = |call: &Call<'_>| call.keys.len() < max_keys && call.is_for(&operation);
        let found = self.calls[first_usable..].iter().rposition(has_room);
        let call = found.map_or(self.calls.len(), |index| first_usable + index);
        if found.is_none() {
            self.calls.push(Call {
                command,
                algorithm: operation.algorithm,
                pace: operation.pace,
                at: operation.at,
                keys: Vec::new(),
                entries: Vec::new(),
            });
        }
        let key = self.calls[call].add_key(&operation);
        OperationLocation {
            call,
            key,
            entry: 0,
            nth: 0,
        }
    }
}

impl<'a> Call<'a> {
    /// Returns whether an operation has the same algorithm, rate and time as this call.
    fn is_for(&self, other: &Operation<'_>) -> bool {
        (self.algorithm, self.at) == (other.algorithm, other.at)
            && (std::ptr::eq(self.pace, other.pace) || self.pace == other.pace)
    }

    /// Adds a key with its first operation. Returns the key's index.
    fn add_key(&mut self, operation: &Operation<'a>) -> usize {
        self.keys.push(operation.key);
        self.entries
            .push(SmallVec::from_buf([(1, operation.entry)]));
        self.keys.len() - 1
    }

    /// Adds an operation to a key of this call; `None` if the key has as many as it may have.
    ///
    /// Returns the index of the operation's entry, and its index among equal joins.
    fn add_to_key(&mut self, key: usize, new: Entry) -> Option<(usize, u32)> {
        let entries = &mut self.entries[key];
        let index = entries.len().checked_sub(1)?;
        let (count, last) = &mut entries[index];
        // Only joins are counted: two refunds of one charge are not a refund of two charges.
        if self.command == ScriptCommand::Join && *last == new {
            *count += 1;
            return Some((index, *count - 1));
        }
        if entries.len() == MAX_ENTRIES {
            return None;
        }
        entries.push((1, new));
        Some((index + 1, 0))
    }

    /// Returns the number of entries of each key.
    pub(super) fn entries(&self) -> impl Iterator<Item = usize> {
        self.entries.iter().map(SmallVec::len)
    }

    /// Packs the call in the form that the scripts read.
    pub(super) fn packed(&self) -> Vec<u8> {
        let rate = self.pace.packed();
        let entries: usize = self.entries().sum();
        // Command, two times and a length; a length for each key; and for each entry its count,
        // cost and three numbers.
        let mut packed = Vec::with_capacity(19 + rate.len() + 2 * self.keys.len() + 32 * entries);
        packed.push(self.command as u8);
        let mut add = |bytes: &[u8]| packed.extend_from_slice(bytes);
        add(&at_or_now(self.at).to_le_bytes());
        add(&micros(self.pace.since()).to_le_bytes());
        add(&pack_length(rate.len()));
        add(rate);
        for entries in &self.entries {
            add(&pack_length(entries.len()));
            for (count, entry) in entries {
                add(&count.to_le_bytes());
                add(&entry.cost.to_le_bytes());
                entry.numbers.iter().for_each(|it| add(&it.to_le_bytes()));
            }
        }
        packed
    }
}

/// Packs a length that is known to be short.
fn pack_length(length: usize) -> [u8; 2] {
    u16::try_from(length).unwrap_or(u16::MAX).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Join;
    use super::*;
    use limit::{Delay, Limit};

    const KEYS: [&[u8]; 5] = [b"a", b"b", b"c", b"d", b"e"];

    proptest! {
        #![proptest_config(testing::config())]

        #[test]
        fn operations_on_a_key_keep_their_order(
            // Index of the key and of the pace, burst, and whether it is a token bucket.
            joins in prop::collection::vec((0..5_usize, 0..2_usize, 1..3_u32, any::<bool>()), 0..80),
            max_keys in 1..4_usize,
        ) {
            let pace = |rate: &str| {
                let rate = rate.parse().unwrap();
                StoreRate::new(rate, Algorithm::LeakyBucket, Moment::default()).unwrap()
            };
            let paces = [pace("1r/s"), pace("2r/s")];
            let joins: Vec<_> = joins
                .into_iter()
                .map(|(key, pace, burst, is_token)| Join {
                    key: KEYS[key],
                    algorithm: if is_token { Algorithm::TokenBucket } else { Algorithm::LeakyBucket },
                    pace: &paces[pace],
                    limit: Limit { burst, ..Limit::unlimited(Delay::Above(0), limit::Cost::ONE) },
                    at: None,
                })
                .collect();
            let calls = Calls::group(ScriptCommand::Join, joins.iter().map(Operation::from), max_keys);
            prop_assert_eq!(calls.locations.len(), joins.len());
            for call in &calls.calls {
                prop_assert!(call.keys.len() <= max_keys);
                let distinct: std::collections::HashSet<_> = call.keys.iter().collect();
                prop_assert_eq!(distinct.len(), call.keys.len());
            }
            for key in KEYS {
                let own = joins.iter().zip(&calls.locations).filter(|(join, _)| join.key == key);
                let mut last = None;
                for (join, location) in own {
                    let call = &calls.calls[location.call];
                    prop_assert_eq!(call.keys[location.key], key);
                    prop_assert!(call.is_for(&join.into()));
                    let (count, entry) = call.entries[location.key][location.entry];
                    prop_assert_eq!(entry, Operation::from(join).entry);
                    prop_assert!(location.nth < count);
                    let order = Some((location.call, location.entry, location.nth));
                    prop_assert!(last < order, "{:?} {:?}", last, order);
                    last = order;
                }
            }
        }
    }
}
