//! Calls for permits of keys: `in_flight` of a limit bounds the running requests of a key.
//!
//! A *permit* is the right to run one request. For a zone in Redis, the bound is for all gateways
//! together. `permits` has the calls for the permits of an origin.

use std::time::Duration;

use config::redis::double;
use limit::{KeyPermitsCall, KeyPermitsReply, Moment};

use super::operation::{at_or_now, span_micros};
use super::reply::{DONE, Packed, TAKEN, TOO_LATE};
use super::script::{self, Script};
use super::{Error, Store};

/// Call for the permits of one key.
#[derive(Clone, Debug)]
pub struct KeyCall<'a> {
    /// Name in Redis after the [`Store`]'s prefix.
    pub key: &'a [u8],
    /// Time for which the store counts the permits if the gateway does not call again.
    pub lifetime: Duration,
    /// Content of the call.
    pub content: KeyPermitsCall,
}

/// Calls of one gateway: reports its permits of keys, and asks for more.
#[derive(Clone, Debug)]
pub struct InFlightCalls<'a> {
    /// Id of the gateway, or of one part of it.
    pub gateway: [u8; 8],
    /// One call for each key.
    pub calls: &'a [KeyCall<'a>],
    /// Time of the calls. `None` means now, on Redis's clock; only tests set it.
    pub at: Option<Moment>,
}

impl Store {
    /// Makes all calls, in order and in one round trip. Returns a reply for each.
    pub async fn key_permits(
        &self,
        calls: &InFlightCalls<'_>,
    ) -> Vec<Result<KeyPermitsReply, Error>> {
        let max_keys = self.max_keys();
        let mut replies = self.call_for_key_permits(calls, max_keys).await;
        if self.must_split(max_keys, &replies) {
            replies = self.call_for_key_permits(calls, self.max_keys()).await;
        }
        replies
    }

    /// Makes all calls, with at most `max_keys` keys in each call of the script.
    async fn call_for_key_permits(
        &self,
        calls: &InFlightCalls<'_>,
        max_keys: usize,
    ) -> Vec<Result<KeyPermitsReply, Error>> {
        let parts = parts(calls.calls, max_keys);
        let packed: Vec<_> = parts.iter().map(|part| calls.packed(part)).collect();
        let command = |index: usize, sent: Option<&_>| {
            let keys = parts[index].iter().map(|call| call.key);
            script::command(Script::InFlight, keys, &packed[index], &self.prefix, sent)
        };
        let replies = self.run(parts.len(), command).await;
        let replies = parts.iter().zip(replies).flat_map(|(part, reply)| {
            let keys = reply.and_then(|it| self.read(&it, |packed| read(packed, part.len())));
            keys.unwrap_or_else(|error| vec![Err(error); part.len()])
        });
        replies.collect()
    }
}

/// Splits the calls into parts with the same lifetime and at most `max_keys` keys each.
fn parts<'c, 'a>(calls: &'c [KeyCall<'a>], max_keys: usize) -> Vec<&'c [KeyCall<'a>]> {
    let same_lifetime = calls.chunk_by(|one, other| one.lifetime == other.lifetime);
    let parts = same_lifetime.flat_map(|part| part.chunks(max_keys.max(1)));
    parts.collect()
}

impl InFlightCalls<'_> {
    /// Packs calls with the same lifetime in the form that the script reads.
    fn packed(&self, part: &[KeyCall<'_>]) -> Vec<u8> {
        let lifetime = part.first().map_or(Duration::ZERO, |call| call.lifetime);
        let mut packed = Vec::with_capacity(24 + 48 * part.len());
        packed.extend_from_slice(&at_or_now(self.at).to_le_bytes());
        packed.extend_from_slice(&self.gateway);
        let mut add = |number: f64| packed.extend_from_slice(&number.to_le_bytes());
        add(span_micros(lifetime));
        for KeyCall { content: call, .. } in part {
            add(double(call.number));
            for permits in [call.has, call.requested, call.yields] {
                add(double(permits as u64));
            }
            add(f64::from(u8::from(call.waits)));
            add(f64::from(call.maximum.get()));
        }
        packed
    }
}

/// Reads a reply about `keys` keys; `None` if it is not one of the script.
pub(super) fn read(packed: &[u8], keys: usize) -> Option<Vec<Result<KeyPermitsReply, Error>>> {
    let mut rest = Packed(packed);
    let _now = rest.moment()?;
    let replies = (0..keys).map(|_| read_key(&mut rest));
    let replies = replies.collect::<Option<Vec<_>>>()?;
    rest.0.is_empty().then_some(replies)
}

/// Reads the part of a reply about one key.
fn read_key(rest: &mut Packed<'_>) -> Option<Result<KeyPermitsReply, Error>> {
    match rest.take()? {
        [TAKEN] => Some(Err(Error::key_taken())),
        [DONE] => Some(Ok(KeyPermitsReply {
            granted: rest.count()?,
            others: rest.count()?,
            withheld: rest.count()?,
            others_wait: rest.take()? == [1],
        })),
        [TOO_LATE] => Some(Err(Error::call_ignored())),
        _ => None,
    }
}
