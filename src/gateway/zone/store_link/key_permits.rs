//! Calls to the store for permits of keys, where `in_flight` applies over all gateways.
//!
//! A *permit* is the right to run one request of a key. `key/shared_permits` decides when to call.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;
use std::time::Duration;

use limit::{KEY_PERMITS_LEASE, KeyPermitsCall, KeyPermitsReply};

use super::StoreLink;
use super::charge_request::Reply;
use crate::store::{Error, InFlightCalls, KeyCall, Store};

/// Call for the permits of a key.
pub(super) struct PermitsRequest {
    pub(super) link: Rc<StoreLink>,
    /// Name of the key in the store.
    pub(super) name: Vec<u8>,
    pub(super) call: KeyPermitsCall,
    pub(super) reply: Reply<KeyPermitsReply>,
}

thread_local! {
    // The worker has the id, not the link. A reload may replace the link; with another id, the
    // store would withhold the permits of the old one, like those of a vanished gateway.
    /// Id of this worker, unique among the workers of all gateways.
    static WORKER: [u8; 8] = RandomState::new().hash_one(std::process::id()).to_le_bytes();
    /// Number of the worker's last call.
    static NUMBER: Cell<u64> = const { Cell::new(0) };
}

/// Makes these calls. Returns the replies.
pub(super) async fn call(
    store: &Store,
    requests: &[PermitsRequest],
) -> Vec<Result<KeyPermitsReply, Error>> {
    if requests.is_empty() {
        return Vec::new();
    }
    let calls = requests.iter().map(|request| KeyCall {
        key: &request.name,
        lifetime: request.link.permit_lifetime(),
        content: request.call,
    });
    let calls: Vec<_> = calls.collect();
    let calls = InFlightCalls {
        gateway: WORKER.with(|id| *id),
        calls: &calls,
        at: None,
    };
    store.key_permits(&calls).await
}

impl StoreLink {
    /// Makes a call for the permits of a key.
    pub(in crate::zone) fn call_for_permits(
        self: &Rc<Self>,
        key: &[u8],
        call: KeyPermitsCall,
        reply: Reply<KeyPermitsReply>,
    ) {
        self.batcher.call_for_permits(PermitsRequest {
            link: Rc::clone(self),
            name: [&self.permits_prefix, key].concat(),
            call,
            reply,
        });
    }

    /// Returns the number of the next call for permits.
    pub(in crate::zone) fn next_permits_call() -> u64 {
        NUMBER.set(NUMBER.get() + 1);
        NUMBER.get()
    }

    /// Returns how long the store counts permits that are not confirmed.
    pub(in crate::zone) fn permit_lifetime(&self) -> Duration {
        KEY_PERMITS_LEASE + self.settings.orphan
    }
}
