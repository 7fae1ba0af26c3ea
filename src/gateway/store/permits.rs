//! Calls of a gateway to a pool of permits that several gateways share.

use std::time::Duration;

use config::redis::double;
use limit::{KnownMembers, Moment, PoolCall, PoolCounts, PoolReply};

use super::Error;
use super::operation::micros;
use super::reply::Packed;
use super::script::{Script, ScriptCall};

/// Call of a gateway to a pool: reports what it holds and requests, and leases permits.
#[derive(Clone, Debug)]
pub struct PermitsCall<'a> {
    /// Name in Redis after the [`Store`](super::Store)'s prefix.
    pub pool: &'a [u8],
    /// Id of the gateway, or of one part of it.
    pub gateway: [u8; 8],
    /// Maximum of the pool in this gateway's file, and since when.
    pub most: (usize, Moment),
    /// Duration for which permits of this gateway stay withheld if it vanishes.
    pub orphan: Duration,
    /// Content of the call.
    pub call: PoolCall,
    /// Time of the call. `None` means now, on Redis's clock; only tests set it.
    pub at: Option<Moment>,
}

impl ScriptCall for PermitsCall<'_> {
    const SCRIPT: Script = Script::Permits;
    type Reply = PoolReply;

    fn keys(&self) -> Vec<Vec<u8>> {
        vec![self.pool.to_vec()]
    }

    fn packed(&self) -> Vec<u8> {
        let call = &self.call;
        let count = |count: usize| double(count as u64);
        let mut packed = Vec::with_capacity(113);
        let mut add = |number: f64| packed.extend_from_slice(&number.to_le_bytes());
        add(self.at.map_or(-1.0, micros));
        add(micros(self.most.1));
        add(count(self.most.0));
        add((self.orphan.as_secs_f64() * 1e6).min(1e15).round());
        packed.extend_from_slice(&self.gateway);
        let mut add = |number: f64| packed.extend_from_slice(&number.to_le_bytes());
        add(double(call.number));
        for number in [call.held, call.in_use] {
            add(count(number));
        }
        add(call.lowered_maximum.map_or(f64::INFINITY, count));
        for number in [call.usable, call.wish] {
            add(count(number));
        }
        add(double(call.weight));
        add(double(call.members.registrations));
        add(double(call.members.members));
        packed.push(u8::from(call.leaves));
        packed
    }

    fn read(&self, packed: &[u8]) -> Option<Result<PoolReply, Error>> {
        read(packed)
    }
}

fn read(packed: &[u8]) -> Option<Result<PoolReply, Error>> {
    let mut rest = Packed(packed);
    let _now = rest.moment()?;
    let read = match rest.take()? {
        [0] => Err(Error::taken()),
        [1] => {
            let leased = count(&mut rest)?;
            let keeps = count(&mut rest)?;
            let [flags] = rest.take()?;
            let of = count(&mut rest)?;
            let gateways = u32::try_from(count(&mut rest)?).ok()?;
            let (held, in_use) = (count(&mut rest)?, count(&mut rest)?);
            let (withheld, free) = (count(&mut rest)?, count(&mut rest)?);
            Ok(PoolReply {
                lent: leased,
                keeps,
                others_wait: flags & 1 > 0,
                is_scarce: flags & 2 > 0,
                counts: PoolCounts {
                    of,
                    gateways,
                    held,
                    in_use,
                    withheld,
                    is_recovering: flags & 4 > 0,
                    free,
                },
                members: KnownMembers {
                    registrations: rest.whole()?,
                    members: rest.whole()?,
                },
            })
        }
        [2] => Err(Error::too_late()),
        _ => return None,
    };
    rest.0.is_empty().then_some(read)
}
fn count(rest: &mut Packed<'_>) -> Option<usize> {
    usize::try_from(rest.whole()?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(testing::config())]

        #[test]
        fn random_bytes_do_not_break_the_reader(packed in prop::collection::vec(any::<u8>(), 0..130)) {
            let _read = read(&packed);
            let mut reply = 1e15_f64.to_le_bytes().to_vec();
            reply.push(1);
            reply.extend(packed);
            let _read = read(&reply);
        }
    }
}
