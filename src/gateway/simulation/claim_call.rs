//! A gateway's claim of slots and its reply, parsed as `grid.lua` documents them.
//!
//! A gate that gateways share has one schedule of slots in the store. A claim asks for some of
//! them.

use limit::{KeyChange, Rate};

use super::redis::Reply;
use super::script_call::Packed;

/// A claim with its reply. Times are in nanoseconds on the store's clock.
#[derive(Debug)]
pub(super) struct ClaimCall {
    /// Index of the origin.
    pub(super) origin: usize,
    /// Id of the gateway's process.
    pub(super) gateway: Vec<u8>,
    /// Time since which the file has its rate, in microseconds on the gateway's own clock.
    pub(super) since: f64,
    /// Rate of the file.
    pub(super) rate: Rate,
    /// Number of slots that the gateway could use.
    pub(super) requested: f64,
    /// Share of its slots that the gateway may take, above 0 and at most 1.
    pub(super) part_taken: f64,
    /// Duration of a reply in microseconds: earlier slots are not granted.
    pub(super) lead: f64,
    /// Waiting classes: hash of the name, weight, and sum of the weights of waiting keys.
    pub(super) classes: Vec<(u32, f64, f64)>,
    /// Generation of keys that the gateway knows.
    pub(super) known: f64,
    /// Number of this claim.
    pub(super) number: f64,
    /// Number of the last claim that was answered.
    pub(super) answered: f64,
    /// Changes of waiting keys since the last answered claim.
    pub(super) changes: Vec<KeyChange>,
    /// Time of the store.
    pub(super) now: i64,
    /// Number of gateways that the store counts.
    pub(super) gateways: f64,
    /// The gateway's share of all waiters, from 0 to 1.
    pub(super) part: f64,
    /// Effective rate.
    pub(super) in_force: Rate,
    /// Number of departures that each granted slot stands for.
    pub(super) pieces: u32,
    /// Granted slots.
    pub(super) slots: Vec<i64>,
    /// Whether the store recorded the changes.
    pub(super) is_noted: bool,
    /// Generation of keys after them.
    pub(super) generation: f64,
    /// Keys, each with the number of gateways at which it waits.
    pub(super) news: Vec<(u64, u16)>,
}

impl ClaimCall {
    /// Parses a claim; `None` if the command is not a claim, or has failed.
    ///
    /// # Errors
    ///
    /// Returns an error if the claim or the reply has another format.
    pub(super) fn read(command: &[Vec<u8>], reply: &Reply) -> Result<Option<Self>, String> {
        let [name, _, _, key, packed] = command else {
            return Ok(None);
        };
        let key = String::from_utf8_lossy(key);
        let origin = key.split_once(":gate:origin").map(|(_, rest)| rest);
        let origin = origin.and_then(|rest| rest.split_once('.')?.0.parse().ok());
        match (origin, reply) {
            (Some(origin), Reply::Text(reply)) if name.starts_with(b"EVAL") => {
                let read = Self::read_packed(origin, Packed(packed), Packed(reply));
                let read = read.ok_or("a claim cannot be read".to_owned());
                read.map(Some)
            }
            _ => Ok(None),
        }
    }

    fn read_packed(origin: usize, mut claim: Packed, mut reply: Packed) -> Option<Self> {
        // A negative time means that the store uses Redis's own clock.
        claim.double().filter(|now| *now < 0.0)?;
        let since = claim.double()?;
        let rate = parse_rate(claim.text()?.get(32..)?)?;
        let gateway = claim.take::<8>()?.to_vec();
        let (requested, part_taken, lead) = (claim.double()?, claim.double()?, claim.double()?);
        let (known, number, answered) = (claim.double()?, claim.double()?, claim.double()?);
        let mut classes = Vec::new();
        for _ in 0..claim.byte()? {
            classes.push((claim.long()?, claim.double()?, claim.double()?));
        }
        let mut changes = Vec::new();
        for _ in 0..claim.short()? {
            changes.push(KeyChange {
                key: claim.take().map(u64::from_le_bytes)?,
                class: claim.long()?,
                weight: claim.byte()?.into(),
            });
        }
        let now = to_nanos(reply.double()?);
        let (gateways, part) = (reply.double()?, reply.double()?);
        // First free slot, and the time from which another claim would be granted more.
        reply.double()?;
        reply.double()?;
        let in_force = match reply.byte()? {
            1 => rate,
            2 => parse_rate(reply.text()?)?,
            _ => return None,
        };
        let pieces = reply.long()?;
        let mut slots = Vec::new();
        for _ in 0..reply.short()? {
            slots.push(to_nanos(reply.double()?));
        }
        let parts = usize::from(reply.byte()?);
        (parts == classes.len()).then_some(())?;
        (0..parts).try_for_each(|_| reply.double().map(drop))?;
        let (is_noted, generation) = (reply.byte()? == 1, reply.double()?);
        let news = reply.text()?.chunks_exact(10).map(|news| {
            let mut news = Packed(news);
            let key = news.take().map(u64::from_le_bytes)?;
            Some((key, news.short()?))
        });
        let news = news.collect::<Option<_>>()?;
        Some(Self {
            origin,
            gateway,
            since,
            rate,
            requested,
            part_taken,
            lead,
            classes,
            known,
            number,
            answered,
            changes,
            now,
            gateways,
            part,
            in_force,
            pieces,
            slots,
            is_noted,
            generation,
            news,
        })
    }
}

fn parse_rate(written: &[u8]) -> Option<Rate> {
    std::str::from_utf8(written).ok()?.parse().ok()
}

/// Converts microseconds with decimals to nanoseconds.
fn to_nanos(micros: f64) -> i64 {
    micros.trunc() as i64 * 1000 + (micros.fract() * 1000.0) as i64
}
