//! Claims of slots: gateways share one grid of departure times at an origin, through Redis.
//!
//! A *slot* is a departure time on the grid. A *claim* asks for slots, and reports the requests
//! that wait at the gate. `permits` has the calls for the permits of an origin, `backoff` those for
//! its learned state.

use std::num::NonZeroU32;
use std::time::Duration;

use config::redis::double;
use limit::{ClassDemand, KeyNews, KeyReport, Moment, Rate, to_whole};

use super::operation::{at_or_now, micros};
use super::reply::{OTHER_RATE, OWN_RATE, Packed, TAKEN};
use super::script::{Script, ScriptCall};
use super::{Error, StoreRate};

/// Upper bound of the slots that the script grants as one. The fastest rate has 200.
const MAX_PIECES: u32 = 1000;

/// Bytes of a key in the reply: its hash, and the number of gateways at which it waits.
const KEY_BYTES: usize = 8 + 2;

/// Claim: a gateway asks for slots of an origin's grid, and reports its waiters.
#[derive(Clone, Debug)]
pub struct Claim<'a> {
    /// Name in Redis after the [`Store`](super::Store)'s prefix.
    pub grid: &'a [u8],
    /// Id of the gateway, or of one part of it.
    pub gateway: [u8; 8],
    /// Rate of the origin in this gateway's file.
    pub pace: &'a StoreRate,
    /// Number of slots that the gateway could use.
    pub slots: u64,
    /// Share of its slots that the gateway may take, above 0 and at most 1.
    pub part: f64,
    /// Time within which an answer arrives. Slots that are due sooner are not granted.
    pub lead: Duration,
    /// Demand of the classes with waiters; empty if there are none. At most 255.
    pub classes: &'a [ClassDemand],
    /// Keys with waiters. `None`: only the sum of their weights is known.
    pub keys: Option<&'a KeyReport>,
    /// Time of the claim. `None` means now, on Redis's clock; only tests set it.
    pub at: Option<Moment>,
}

/// Answer to a [`Claim`], with times on Redis's clock.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimReply {
    /// Time at which the script ran.
    pub now: Moment,
    /// Number of gateways that share the grid, this one included.
    pub gateways: NonZeroU32,
    /// Share of the rate that this gateway gets.
    pub part: f64,
    /// Rate in force: the rate of the file that changed last.
    pub rate: Rate,
    /// First slot that no gateway has claimed.
    pub free: Moment,
    /// Time at which another claim would be granted more slots.
    pub again: Moment,
    /// Share of each class's waiters that wait at this gateway, in the order of the claim.
    pub classes: Vec<f64>,
    /// For each of its keys, the number of gateways at which requests of the key wait.
    pub keys: KeyNews,
    /// Slots that were granted.
    pub slots: Vec<Moment>,
}

impl ScriptCall for Claim<'_> {
    const SCRIPT: Script = Script::Grid;
    type Reply = ClaimReply;

    fn keys(&self) -> Vec<Vec<u8>> {
        vec![self.grid.to_vec()]
    }

    fn packed(&self) -> Vec<u8> {
        let rate = self.pace.packed();
        let changes = self.keys.map_or(&[][..], |keys| &keys.changes);
        let capacity = 90 + rate.len() + 20 * self.classes.len() + 13 * changes.len();
        let mut packed = Vec::with_capacity(capacity);
        let mut add = |bytes: &[u8]| packed.extend_from_slice(bytes);
        add(&at_or_now(self.at).to_le_bytes());
        add(&micros(self.pace.since()).to_le_bytes());
        add(&u16::try_from(rate.len()).unwrap_or(u16::MAX).to_le_bytes());
        add(rate);
        add(&self.gateway);
        add(&double(self.slots).to_le_bytes());
        add(&self.part.to_le_bytes());
        add(&(self.lead.as_secs_f64() * 1e6).to_le_bytes());
        let numbers = self.keys;
        let numbers = numbers.map(|keys| [keys.generation, keys.claim, keys.answered]);
        for number in numbers.unwrap_or_default() {
            add(&double(number).to_le_bytes());
        }
        let count = u8::try_from(self.classes.len()).unwrap_or(u8::MAX);
        add(&[count]);
        for class in &self.classes[..count.into()] {
            add(&class.class.to_le_bytes());
            add(&f64::from(class.weight).to_le_bytes());
            add(&double(class.keys).to_le_bytes());
        }
        let count = u16::try_from(changes.len()).unwrap_or(u16::MAX);
        add(&count.to_le_bytes());
        for change in &changes[..count.into()] {
            add(&change.key.to_le_bytes());
            add(&change.class.to_le_bytes());
            add(&[u8::try_from(change.weight).unwrap_or(u8::MAX)]);
        }
        packed
    }

    fn read(&self, packed: &[u8]) -> Option<Result<ClaimReply, Error>> {
        ClaimReply::read(packed, self.pace.rate())
    }
}

impl ClaimReply {
    /// Reads a reply; `None` if it is not one of the script.
    pub(super) fn read(packed: &[u8], claimed_rate: Rate) -> Option<Result<Self, Error>> {
        let mut rest = Packed(packed);
        let now = rest.moment()?;
        let gateways = rest.number()?.max(1.0);
        let part = rest.number()?;
        let (free, again) = (moment(&mut rest)?, moment(&mut rest)?);
        let rate = match rest.take()? {
            [TAKEN] => return Some(Err(Error::key_taken())),
            [OWN_RATE] => claimed_rate,
            [OTHER_RATE] => rest.text()?.parse().ok()?,
            _ => return None,
        };
        // Each granted instant stands for this number of slots, one interval apart.
        let pieces = Some(u32::from_le_bytes(rest.take()?));
        let pieces = pieces.filter(|pieces| *pieces <= MAX_PIECES)?;
        let count = rest.length()?;
        let mut slots = Vec::with_capacity(count);
        for _ in 0..count {
            let first = moment(&mut rest)?;
            let slot = |piece: u32| first + rate.time_for(piece.into());
            slots.extend((0..pieces).map(slot));
        }
        let [count] = rest.take()?;
        let classes = (0..count).map(|_| rest.number());
        let classes = classes.collect::<Option<_>>()?;
        let keys = read_key_news(&mut rest)?;
        let is_part = part > 0.0 && part <= 1.0;
        if !is_part || !rest.0.is_empty() {
            return None;
        }
        let gateways = u32::try_from(to_whole(gateways)).unwrap_or(u32::MAX);
        let gateways = NonZeroU32::new(gateways)?;
        Some(Ok(Self {
            now,
            gateways,
            part,
            rate,
            free,
            again,
            classes,
            keys,
            slots,
        }))
    }
}

/// Reads the part of the reply about keys: at how many gateways requests of each wait.
fn read_key_news(rest: &mut Packed<'_>) -> Option<KeyNews> {
    let [is_noted] = rest.take()?;
    let generation = rest.number()?;
    let bytes = rest.length()?;
    let gateways_of_key = |_| {
        let key = u64::from_le_bytes(rest.take()?);
        Some((key, u16::from_le_bytes(rest.take()?)))
    };
    let gateways = (0..bytes / KEY_BYTES).map(gateways_of_key);
    Some(KeyNews {
        is_noted: is_noted == 1,
        generation: to_whole(generation),
        gateways: gateways.collect::<Option<_>>()?,
    })
}

/// Reads an instant in microseconds, which may have decimals.
fn moment(rest: &mut Packed<'_>) -> Option<Moment> {
    let micros = rest.number()?.max(0.0);
    // Convert the decimals separately: as nanoseconds, the whole number would not fit in a double.
    let nanos = to_whole(micros.fract() * 1000.0);
    let whole_nanos = to_whole(micros).saturating_mul(1000);
    Some(Moment::from_nanos(whole_nanos + nanos))
}
