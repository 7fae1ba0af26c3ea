//! A call of a zone's script and its reply, parsed as `common.lua` and `bucket.lua` document them.
//!
//! The script keeps a bucket for each key. A leaky bucket has a schedule of *slots*, at which
//! requests leave. A *join* takes a slot, a *refund* returns one, and a *forget* removes the
//! slots after the last waiter.

use super::redis::Reply;

/// A script call with its result.
#[derive(Debug)]
pub(super) struct ScriptCall {
    /// Code of the operation.
    operation: u8,
    /// Operations on keys, with their results.
    pub(super) entries: Vec<CallEntry>,
}

/// Equal operations on a key.
#[derive(Debug)]
pub(super) struct CallEntry {
    /// Name of the key in the store.
    pub(super) key: String,
    /// Number of operations.
    pub(super) count: u32,
    /// Cost of each operation.
    pub(super) cost: u32,
    /// First slot, of a refund.
    pub(super) first: u64,
    /// Number of operations that succeeded, always the first ones.
    pub(super) done: u32,
    /// Of a join: next slot at the end of the schedule.
    pub(super) end: u64,
    /// Of a join: number of requests in the bucket before that slot.
    pub(super) end_level: f64,
    /// Of a join: free slots that were taken.
    pub(super) free: Vec<u64>,
}

const JOIN: u8 = 1;
const REFUND: u8 = 2;
const FORGET: u8 = 3;

impl ScriptCall {
    /// Parses a call; `None` if the command failed, or is not a script for keys of zones.
    ///
    /// # Errors
    ///
    /// Returns an error if the call or the reply has another format.
    pub(super) fn read(command: &[Vec<u8>], reply: &Reply) -> Result<Option<Self>, String> {
        match (command, reply) {
            ([name, _, _, keys @ .., packed], Reply::Text(reply))
                if name.starts_with(b"EVAL") && keys.iter().all(|key| has_part(key, b":zone")) =>
            {
                let read = Self::read_packed(keys, Packed(packed), Packed(reply));
                let read = read.ok_or("the call of a script cannot be read".to_owned());
                read.map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Parses the bytes of a call and of its reply; `None` if they have another format.
    fn read_packed(keys: &[Vec<u8>], mut call_bytes: Packed, mut reply: Packed) -> Option<Self> {
        let mut call = Self {
            operation: call_bytes.byte()?,
            entries: Vec::new(),
        };
        // Of the call: the time; the time since which the file has its rate; the rate. Of the
        // reply: the time.
        call_bytes.double()?;
        call_bytes.double()?;
        call_bytes.text()?;
        reply.double()?;
        for key in keys {
            let entries = call_bytes.short()?;
            // 0: the store refuses the key. 1: the call's rate is in force. 2: another rate is.
            let state = reply.byte()?;
            if state > 0 {
                reply.double()?;
            }
            if state == 2 {
                reply.text()?;
            }
            for _ in 0..entries {
                let mut entry = CallEntry {
                    key: String::from_utf8_lossy(key).into_owned(),
                    count: call_bytes.long()?,
                    cost: call_bytes.long()?,
                    first: call_bytes.whole()?,
                    done: 0,
                    end: 0,
                    end_level: 0.0,
                    free: Vec::new(),
                };
                call_bytes.double()?;
                call_bytes.double()?;
                if state > 0 {
                    entry.done = reply.long()?;
                    if call.is_join() {
                        // Level with the first request, in requests and ticks.
                        (0..2).try_for_each(|_| reply.double().map(drop))?;
                        entry.end_level = reply.double()?;
                        entry.end = reply.whole()?;
                        let free = (0..reply.short()?).map(|_| reply.whole());
                        entry.free = free.collect::<Option<_>>()?;
                    }
                }
                call.entries.push(entry);
            }
        }
        Some(call)
    }

    pub(super) fn is_join(&self) -> bool {
        self.operation == JOIN
    }

    pub(super) fn is_refund(&self) -> bool {
        self.operation == REFUND
    }

    /// Returns whether the call removes slots that no waiter has.
    pub(super) fn is_forget(&self) -> bool {
        self.operation == FORGET
    }
}

impl CallEntry {
    /// Returns whether the key is a leaky bucket, which has a schedule.
    pub(super) fn has_slots(&self) -> bool {
        self.key.contains("leaky_bucket")
    }

    /// Returns the index of the zone, and the gateways' name of the key.
    pub(super) fn zone_and_key(&self) -> Option<(usize, &str)> {
        zone_and_key(&self.key)
    }
}

/// Returns whether the bytes of a key contain `part`.
fn has_part(key: &[u8], part: &[u8]) -> bool {
    key.windows(part.len()).any(|window| window == part)
}

/// Returns the zone's index and the gateways' name of a key, from its name in the store.
pub(super) fn zone_and_key(name: &str) -> Option<(usize, &str)> {
    let (_, rest) = name.split_once(":zone")?;
    let (zone, rest) = rest.split_once(':')?;
    let (_, key) = rest.split_once(':')?;
    Some((zone.parse().ok()?, key))
}

/// Remaining bytes to parse, little-endian. A short has 2 bytes, a long 4.
pub(super) struct Packed<'a>(pub(super) &'a [u8]);

impl<'a> Packed<'a> {
    pub(super) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.take().map(u8::from_le_bytes)
    }

    pub(super) fn short(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    pub(super) fn long(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub(super) fn double(&mut self) -> Option<f64> {
        self.take().map(f64::from_le_bytes)
    }

    /// Reads a double that is a whole number.
    fn whole(&mut self) -> Option<u64> {
        self.double().map(|double| double as u64)
    }

    pub(super) fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.short()?;
        let (text, rest) = self.0.split_at_checked(length.into())?;
        self.0 = rest;
        Some(text)
    }
}
