//! A gateway's claim of slots and its reply, parsed as `grid.lua` documents them.

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
    /// The file's rate, and the time since which the file has it.
    ///
    /// The time is in microseconds on the gateway's own clock.
    pub(super) since: f64,
    pub(super) rate: Rate,
    /// Number of slots that the gateway could use.
    pub(super) requested: f64,
    /// Share of its slots that the gateway may take, above 0 and at most 1.
    pub(super) part_taken: f64,
    /// Duration of a reply in microseconds: earlier slots are not granted.
    pub(super) lead: f64,
    /// Waiting classes: hash of the name, weight, and sum of the weights of waiting keys.
    pub(super) classes: Vec<(u32, f64, f64)>,
    /// Generation of keys that the gateway knows, and numbers of two claims.
    ///
    /// The claims are this one, and the last one that was answered.
    pub(super) known: f64,
    pub(super) number: f64,
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
    /// Whether the store recorded the changes, and the new generation of keys.
    pub(super) is_noted: bool,
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

    fn read_packed(origin: usize, mut asked: Packed, mut received: Packed) -> Option<Self> {
        // A negative time means that the store uses Redis's own clock.
        asked.double().filter(|now| *now < 0.0)?;
        let since = asked.double()?;
        let rate = rate(asked.text()?.get(32..)?)?;
        let gateway = asked.take::<8>()?.to_vec();
        let (requested, part_taken, lead) = (asked.double()?, asked.double()?, asked.double()?);
        let (known, number, answered) = (asked.double()?, asked.double()?, asked.double()?);
        let mut classes = Vec::new();
        for _ in 0..asked.byte()? {
            classes.push((asked.long()?, asked.double()?, asked.double()?));
        }
        let mut changes = Vec::new();
        for _ in 0..asked.short()? {
            changes.push(KeyChange {
                key: asked.take().map(u64::from_le_bytes)?,
                class: asked.long()?,
                weight: asked.byte()?.into(),
            });
        }
        let now = time(received.double()?);
        let (gateways, part) = (received.double()?, received.double()?);
        // First free slot, and the time from which another claim would be granted more.
        received.double()?;
        received.double()?;
        let in_force = match received.byte()? {
            1 => rate,
            2 => self::rate(received.text()?)?,
            _ => return None,
        };
        let pieces = received.long()?;
        let mut slots = Vec::new();
        for _ in 0..received.short()? {
            slots.push(time(received.double()?));
        }
        let parts = usize::from(received.byte()?);
        (parts == classes.len()).then_some(())?;
        (0..parts).try_for_each(|_| received.double().map(drop))?;
        let (is_noted, generation) = (received.byte()? == 1, received.double()?);
        let news = received.text()?.chunks_exact(10).map(|news| {
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

fn rate(written: &[u8]) -> Option<Rate> {
    std::str::from_utf8(written).ok()?.parse().ok()
}

/// Converts microseconds with decimals to nanoseconds.
fn time(micros: f64) -> i64 {
    micros.trunc() as i64 * 1000 + (micros.fract() * 1000.0) as i64
}
