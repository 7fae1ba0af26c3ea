use std::collections::{BTreeMap, BTreeSet};

use super::{Checked, Request};
use crate::actors::{Charge, Grant};
use crate::limit::Cost;
use crate::simulation::redis::Reply;

/// No place of a schedule is handed out twice, and no place is used twice.
///
/// Reads what the scripts are asked and reply, as `common.lua` and `bucket.lua` document it.
#[derive(Default)]
pub(super) struct Places {
    /// The places that are taken: of each key in the store.
    taken: BTreeMap<Vec<u8>, BTreeSet<u64>>,
    /// Who departed at a place: of each zone, key and place.
    used: BTreeMap<(usize, &'static str, u64), u64>,
    has_forgotten: bool,
}

const JOIN: u8 = 1;
const REFUND: u8 = 2;

impl Places {
    /// The store has run a command. Returns what that was, if it was a script.
    pub(super) fn store_ran(
        &mut self,
        command: &[Vec<u8>],
        reply: &Reply,
    ) -> Result<Option<String>, String> {
        let (Some(name), Reply::Text(reply)) = (command.first(), reply) else {
            return Ok(None);
        };
        if !name.starts_with(b"EVAL") {
            return Ok(None);
        }
        let wrong = || "the call of a script cannot be read".to_owned();
        self.read(command, reply)
            .unwrap_or_else(|| Err(wrong()))
            .map(Some)
    }

    fn read(&mut self, command: &[Vec<u8>], reply: &[u8]) -> Option<Result<String, String>> {
        let (packed, keys) = command.get(3..)?.split_last()?;
        let (mut asked, mut told) = (Packed(packed), Packed(reply));
        let what = asked.byte()?;
        asked.double()?;
        asked.double()?;
        asked.text()?;
        let now = told.whole()?;
        let mut steps = format!("{now}");
        for key in keys {
            let entries = asked.short()?;
            let state = told.byte()?;
            let name = String::from_utf8_lossy(key).into_owned();
            steps += &format!(" {name}");
            if state > 0 {
                told.double()?;
            }
            if state == 2 {
                told.text()?;
            }
            let is_schedule = name.contains("leaky_bucket");
            for _ in 0..entries {
                let (many, cost) = (asked.long()?, asked.long()?);
                let first = asked.double()?;
                asked.double()?;
                asked.double()?;
                if state == 0 {
                    steps += " taken";
                    continue;
                }
                let done = told.long()?;
                match what {
                    JOIN => {
                        let found = [told.whole()?, told.whole()?, told.whole()?, told.whole()?];
                        let free: Option<Vec<u64>> =
                            (0..told.short()?).map(|_| told.whole()).collect();
                        steps += &format!(" +{done}/{many}");
                        if is_schedule {
                            let free = free?;
                            steps += &format!(" at {} {free:?}", found[3]);
                            if let Err(wrong) = self.take(key, done, cost, found[3], &free) {
                                return Some(Err(wrong));
                            }
                        }
                    }
                    REFUND if is_schedule => {
                        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                        let first = first as u64;
                        steps += &format!(" -{done} of {first}+{cost}");
                        if done > 0 {
                            self.give_back(key, first, cost);
                        }
                    }
                    _ => {
                        steps += &format!(" asked {what}: {done}");
                        if what != JOIN && what != REFUND {
                            // What was charged behind the last who waits is forgotten.
                            self.taken.remove(key.as_slice());
                        }
                    }
                }
            }
        }
        Some(Ok(steps))
    }

    fn take(&mut self, key: &[u8], done: u32, cost: u32, end: u64, free: &[u64]) -> Checked {
        let taken = self.taken.entry(key.to_vec()).or_default();
        let behind = u64::from(done) - free.len() as u64;
        let new = free
            .iter()
            .copied()
            .chain(end..end + behind * u64::from(cost));
        for place in new {
            if !taken.insert(place) {
                let key = String::from_utf8_lossy(key);
                return Err(format!("place {place} of {key} is handed out twice"));
            }
        }
        Ok(())
    }

    fn give_back(&mut self, key: &[u8], first: u64, cost: u32) {
        if let Some(taken) = self.taken.get_mut(key) {
            for place in first..first + u64::from(cost) {
                taken.remove(&place);
            }
        }
    }

    pub(super) fn store_forgot(&mut self) {
        self.taken.clear();
        self.has_forgotten = true;
    }

    /// A request departs at its place, which nobody else has used.
    pub(super) fn departed(&mut self, request: &Request, grant: &Grant) -> Checked {
        let Charge::Store(charge) = grant.charge else {
            return Ok(());
        };
        // Other algorithms have no places. A store that has forgotten begins with any place.
        if charge.place() == 0 || self.has_forgotten {
            return Ok(());
        }
        for place in charge.place()..charge.place() + u64::from(charge.cost().get()) {
            let used = self
                .used
                .insert((request.zone, request.key, place), request.id);
            if let Some(other) = used {
                let id = request.id;
                return Err(format!(
                    "requests {other} and {id} depart at the same place {place}"
                ));
            }
        }
        Ok(())
    }

    /// A request gives its places back, or some of them.
    pub(super) fn settled(&mut self, request: &Request, cost: Option<Cost>) {
        let kept = usize::try_from(cost.map_or(0, Cost::get)).unwrap_or(0);
        let own = self.used.iter().filter(|(_, id)| **id == request.id);
        let own: Vec<_> = own.map(|(place, _)| *place).skip(kept).collect();
        for place in own {
            self.used.remove(&place);
        }
    }
}

/// What is left to read, little-endian.
struct Packed<'a>(&'a [u8]);

impl<'a> Packed<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take().map(u8::from_le_bytes)
    }

    fn short(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn long(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn double(&mut self) -> Option<f64> {
        self.take().map(f64::from_le_bytes)
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn whole(&mut self) -> Option<u64> {
        self.double().map(|double| double as u64)
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.short()?;
        let (text, rest) = self.0.split_at_checked(length.into())?;
        self.0 = rest;
        Some(text)
    }
}
