//! A call of a zone's script and its reply, parsed as `common.lua` and `bucket.lua` document them.

use super::redis::Reply;

/// A script call with its result.
#[derive(Debug)]
pub(super) struct ScriptCall {
    /// Code of the operation.
    asked: u8,
    pub(super) entries: Vec<CallEntry>,
}

/// Equal operations on a key.
#[derive(Debug)]
pub(super) struct CallEntry {
    /// Name of the key in the store.
    pub(super) key: String,
    /// Number of operations.
    pub(super) many: u32,
    /// Cost of each.
    pub(super) cost: u32,
    /// First slot, of a refund.
    pub(super) first: u64,
    /// Number of operations that succeeded, always the first ones.
    pub(super) done: u32,
    /// Of a join: next slot at the end of the schedule, and the free slots that were taken.
    pub(super) end: u64,
    /// Number of requests in the bucket before that slot.
    pub(super) end_level: f64,
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
                if name.starts_with(b"EVAL") && keys.iter().all(|key| has(key, b":zone")) =>
            {
                let read = Self::read_packed(keys, Packed(packed), Packed(reply));
                let read = read.ok_or("the call of a script cannot be read".to_owned());
                read.map(Some)
            }
            _ => Ok(None),
        }
    }

    fn read_packed(keys: &[Vec<u8>], mut asked: Packed, mut received: Packed) -> Option<Self> {
        let mut call = Self {
            asked: asked.byte()?,
            entries: Vec::new(),
        };
        // The time and the age of the gateway's rate; the rate; the time.
        asked.double()?;
        asked.double()?;
        asked.text()?;
        received.double()?;
        for key in keys {
            let entries = asked.short()?;
            let state = received.byte()?;
            if state > 0 {
                received.double()?;
            }
            if state == 2 {
                received.text()?;
            }
            for _ in 0..entries {
                let mut entry = CallEntry {
                    key: String::from_utf8_lossy(key).into_owned(),
                    many: asked.long()?,
                    cost: asked.long()?,
                    first: asked.whole()?,
                    done: 0,
                    end: 0,
                    end_level: 0.0,
                    free: Vec::new(),
                };
                asked.double()?;
                asked.double()?;
                if state > 0 {
                    entry.done = received.long()?;
                    if call.is_join() {
                        // Level with the first request, in requests and ticks.
                        (0..2).try_for_each(|_| received.double().map(drop))?;
                        entry.end_level = received.double()?;
                        entry.end = received.whole()?;
                        let free = (0..received.short()?).map(|_| received.whole());
                        entry.free = free.collect::<Option<_>>()?;
                    }
                }
                call.entries.push(entry);
            }
        }
        Some(call)
    }

    pub(super) fn is_join(&self) -> bool {
        self.asked == JOIN
    }

    pub(super) fn is_refund(&self) -> bool {
        self.asked == REFUND
    }

    /// Returns whether the call forgets slots.
    pub(super) fn is_forget(&self) -> bool {
        self.asked == FORGET
    }
}

impl CallEntry {
    /// Returns whether its key is a leaky bucket, which has a schedule.
    pub(super) fn has_slots(&self) -> bool {
        self.key.contains("leaky_bucket")
    }

    /// Returns the index of its zone, and the gateways' name of the key.
    pub(super) fn zone_and_key(&self) -> Option<(usize, &str)> {
        zone_and_key(&self.key)
    }
}

fn has(key: &[u8], part: &[u8]) -> bool {
    key.windows(part.len()).any(|window| window == part)
}

/// Returns the zone's index and the gateways' name of a key, from its name in the store.
pub(super) fn zone_and_key(name: &str) -> Option<(usize, &str)> {
    let (_, rest) = name.split_once(":zone")?;
    let (zone, rest) = rest.split_once(':')?;
    let (_, key) = rest.split_once(':')?;
    Some((zone.parse().ok()?, key))
}

/// Remaining bytes to parse, little-endian.
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
