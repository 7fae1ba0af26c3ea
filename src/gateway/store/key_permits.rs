//! Calls for permits of keys, for which `in_flight` applies over all gateways.

use std::time::Duration;

use config::redis::double;
use limit::{KeyPermitsCall, KeyPermitsReply, Moment};

use super::operation::micros;
use super::reply::Packed;
use super::script::{self, Script};
use super::{Error, Store};

/// Calls of one gateway: reports its permits of keys, and asks for more.
#[derive(Clone, Debug)]
pub struct InFlightCalls<'a> {
    /// Id of the gateway, or of one part of it.
    pub gateway: [u8; 8],
    /// For each key its name, the lifetime of its permits, and the call.
    ///
    /// The name is that in Redis after the [`Store`]'s prefix. The lifetime applies if the gateway
    /// does not call again.
    pub calls: &'a [(&'a [u8], Duration, KeyPermitsCall)],
    /// Time of the calls. `None` means now, on Redis's clock; only tests set it.
    pub at: Option<Moment>,
}

impl Store {
    /// Makes all calls, in order and in one round trip. Returns a reply for each.
    pub async fn key_permits(
        &self,
        asked: &InFlightCalls<'_>,
    ) -> Vec<Result<KeyPermitsReply, Error>> {
        let most = self.most_keys();
        let mut replies = self.carry_calls(asked, most).await;
        let is_refused = |reply: &Result<_, _>| matches!(reply, Err(Error::Refused(_)));
        if self.most_keys() < most && replies.iter().any(is_refused) {
            // A call for several keys did nothing, because the keys are on several nodes.
            replies = self.carry_calls(asked, self.most_keys()).await;
        }
        replies
    }

    /// Makes all calls, with at most `most_keys` keys in each call of the script.
    async fn carry_calls(
        &self,
        asked: &InFlightCalls<'_>,
        most_keys: usize,
    ) -> Vec<Result<KeyPermitsReply, Error>> {
        let parts: Vec<_> = parts(asked.calls, most_keys);
        let packed: Vec<_> = parts.iter().map(|part| asked.packed(part)).collect();
        let command = |index: usize, sent: Option<&_>| {
            let keys = parts[index].iter().map(|(key, ..)| *key);
            script::command(Script::InFlight, keys, &packed[index], self.prefix(), sent)
        };
        let replies = self.run(parts.len(), command).await;
        let mut all = Vec::with_capacity(asked.calls.len());
        for (part, reply) in parts.iter().zip(replies) {
            match reply.and_then(|it| self.read(&it, |packed| read(packed, part.len()))) {
                Ok(keys) => all.extend(keys),
                Err(error) => all.extend(part.iter().map(|_| Err(error.clone()))),
            }
        }
        all
    }
}

/// Splits the calls into parts with the same lifetime and at most `most_keys` keys each.
fn parts<'c, 'a>(
    calls: &'c [(&'a [u8], Duration, KeyPermitsCall)],
    most_keys: usize,
) -> Vec<&'c [(&'a [u8], Duration, KeyPermitsCall)]> {
    let same = calls.chunk_by(|(_, one, _), (_, other, _)| one == other);
    same.flat_map(|part| part.chunks(most_keys.max(1)))
        .collect()
}

impl InFlightCalls<'_> {
    fn packed(&self, part: &[(&[u8], Duration, KeyPermitsCall)]) -> Vec<u8> {
        let kept = part.first().map_or(Duration::ZERO, |(_, kept, _)| *kept);
        let mut packed = Vec::with_capacity(24 + 48 * part.len());
        packed.extend_from_slice(&self.at.map_or(-1.0, micros).to_le_bytes());
        packed.extend_from_slice(&self.gateway);
        let mut add = |number: f64| packed.extend_from_slice(&number.to_le_bytes());
        add((kept.as_secs_f64() * 1e6).min(1e15).round());
        for (.., call) in part {
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
fn read(packed: &[u8], keys: usize) -> Option<Vec<Result<KeyPermitsReply, Error>>> {
    let mut rest = Packed(packed);
    let _now = rest.moment()?;
    let read = (0..keys).map(|_| read_key(&mut rest));
    let read = read.collect::<Option<Vec<_>>>()?;
    rest.0.is_empty().then_some(read)
}

fn read_key(rest: &mut Packed<'_>) -> Option<Result<KeyPermitsReply, Error>> {
    let count = |whole: u64| usize::try_from(whole).ok();
    match rest.take()? {
        [0] => Some(Err(Error::taken())),
        [1] => Some(Ok(KeyPermitsReply {
            granted: count(rest.whole()?)?,
            others: count(rest.whole()?)?,
            withheld: count(rest.whole()?)?,
            others_wait: rest.take()? == [1],
        })),
        [2] => Some(Err(Error::too_late())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(testing::config())]

        #[test]
        fn random_bytes_do_not_break_the_reader(packed in prop::collection::vec(any::<u8>(), 0..80)) {
            let _read = read(&packed, 2);
            let mut reply = 1e15_f64.to_le_bytes().to_vec();
            reply.push(1);
            reply.extend(packed);
            let _read = read(&reply, 2);
        }
    }
}
