//! Calls of a gateway to a pool of permits of an origin, which gateways share through Redis.
//!
//! A *permit* is the right to run one request at the origin. A *lease* gives a gateway some permits
//! until an instant. Permits of a gateway that vanished are *withheld* for a while. `key_permits`
//! has the calls for the permits of keys.

use std::time::Duration;

use config::redis::double;
use limit::{KnownMembers, Moment, PoolCall, PoolCounts, PoolReply};

use super::Error;
use super::operation::{at_or_now, micros, span_micros};
use super::reply::{DONE, Packed, TAKEN, TOO_LATE};
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
        let (maximum, since) = self.most;
        // In the order of `scripts/permits.lua`, with the gateway's id between both parts.
        let before_gateway = [
            at_or_now(self.at),
            micros(since),
            count(maximum),
            span_micros(self.orphan),
        ];
        let after_gateway = [
            double(call.number),
            count(call.held),
            count(call.in_use),
            call.lowered_maximum.map_or(f64::INFINITY, count),
            count(call.usable),
            count(call.requested),
            double(call.weight),
            double(call.members.registrations),
            double(call.members.members),
        ];
        let mut packed = before_gateway.map(f64::to_le_bytes).concat();
        packed.extend(self.gateway);
        packed.extend(after_gateway.map(f64::to_le_bytes).concat());
        packed.push(u8::from(call.leaves));
        packed
    }

    fn read(&self, packed: &[u8]) -> Option<Result<PoolReply, Error>> {
        read(packed)
    }
}

/// Bit of a reply's flags: other gateways wait for permits.
const OTHERS_WAIT: u8 = 1;
/// Bit of a reply's flags: few permits are free.
const SCARCE: u8 = 2;
/// Bit of a reply's flags: the pool leases nothing until it knows who holds which permits.
const RECOVERING: u8 = 4;

/// Reads a reply; `None` if it is not one of the script.
pub(super) fn read(packed: &[u8]) -> Option<Result<PoolReply, Error>> {
    let mut rest = Packed(packed);
    let _now = rest.moment()?;
    let reply = match rest.take()? {
        [TAKEN] => Err(Error::key_taken()),
        [DONE] => {
            // Permits that are leased from now on, and those that the gateway may keep.
            let (leased, keeps) = (rest.count()?, rest.count()?);
            let [flags] = rest.take()?;
            // Fields are read in the order in which they are written here.
            Ok(PoolReply {
                leased,
                keeps,
                others_wait: flags & OTHERS_WAIT > 0,
                is_scarce: flags & SCARCE > 0,
                counts: PoolCounts {
                    of: rest.count()?,
                    gateways: u32::try_from(rest.whole()?).ok()?,
                    held: rest.count()?,
                    in_use: rest.count()?,
                    withheld: rest.count()?,
                    is_recovering: flags & RECOVERING > 0,
                    free: rest.count()?,
                },
                members: KnownMembers {
                    registrations: rest.whole()?,
                    members: rest.whole()?,
                },
            })
        }
        [TOO_LATE] => Err(Error::call_ignored()),
        _ => return None,
    };
    rest.0.is_empty().then_some(reply)
}
