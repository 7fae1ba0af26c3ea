//! A call of a script and its reply, read as `common.lua` and `bucket.lua` document them.

use super::redis::Reply;

/// What a script was asked, and what it did.
#[derive(Debug)]
pub(super) struct ScriptCall {
    asked: u8,
    pub(super) entries: Vec<CallEntry>,
}

/// Equal operations on a key.
#[derive(Debug)]
pub(super) struct CallEntry {
    /// The name of the key in the store.
    pub(super) key: String,
    pub(super) many: u32,
    pub(super) cost: u32,
    /// Of a refund: the place.
    pub(super) first: u64,
    /// How many were done, the first ones.
    pub(super) done: u32,
    /// Of a join: the next place at the end of the schedule, and the free places that were taken.
    pub(super) end: u64,
    /// How many requests the bucket holds before that place.
    pub(super) end_level: f64,
    pub(super) free: Vec<u64>,
}

const JOIN: u8 = 1;
const REFUND: u8 = 2;
const FORGET: u8 = 3;

impl ScriptCall {
    /// Reads a call; `None` if the command has failed, or is no script for keys of zones.
    ///
    /// # Errors
    ///
    /// Returns an error if the call or the reply has another form.
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

    fn read_packed(keys: &[Vec<u8>], mut asked: Packed, mut told: Packed) -> Option<Self> {
        let mut call = Self {
            asked: asked.byte()?,
            entries: Vec::new(),
        };
        // The time and since when the gateway has had its rate; its rate; the time.
        asked.double()?;
        asked.double()?;
        asked.text()?;
        told.double()?;
        for key in keys {
            let entries = asked.short()?;
            let state = told.byte()?;
            if state > 0 {
                told.double()?;
            }
            if state == 2 {
                told.text()?;
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
                    entry.done = told.long()?;
                    if call.is_join() {
                        // The level with the first one, in requests and ticks.
                        (0..2).try_for_each(|_| told.double().map(drop))?;
                        entry.end_level = told.double()?;
                        entry.end = told.whole()?;
                        let free = (0..told.short()?).map(|_| told.whole());
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

    /// Whether places are forgotten.
    pub(super) fn is_forget(&self) -> bool {
        self.asked == FORGET
    }
}

impl CallEntry {
    /// Whether its key is a leaky bucket, which has a schedule.
    pub(super) fn has_places(&self) -> bool {
        self.key.contains("leaky_bucket")
    }

    /// The number of its zone, and what the gateways call the key.
    pub(super) fn zone_and_key(&self) -> Option<(usize, &str)> {
        zone_and_key(&self.key)
    }
}

fn has(key: &[u8], part: &[u8]) -> bool {
    key.windows(part.len()).any(|window| window == part)
}

/// The number of the zone, and what the gateways call the key with this name in the store.
pub(super) fn zone_and_key(name: &str) -> Option<(usize, &str)> {
    let (_, rest) = name.split_once(":zone")?;
    let (zone, rest) = rest.split_once(':')?;
    let (_, key) = rest.split_once(':')?;
    Some((zone.parse().ok()?, key))
}

/// What is left to read, little-endian.
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
