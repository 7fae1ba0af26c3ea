//! Calls to the store for permits of keys, where `in_flight` applies over all gateways.

use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;
use std::time::Duration;

use limit::{KEY_PERMITS_LEASE, KeyPermitsCall, KeyPermitsReply};

use super::StoreLink;
use super::ask::Reply;
use crate::store::{Error, InFlightCalls, Store};

/// Call for the permits of a key.
pub(super) struct PermitsRequest {
    pub(super) zone: Rc<StoreLink>,
    /// Name of the key in the store.
    pub(super) name: Vec<u8>,
    pub(super) call: KeyPermitsCall,
    pub(super) reply: Reply<KeyPermitsReply>,
}

/// Calls of a worker for the permits of keys.
#[derive(Default)]
pub(super) struct PermitsCalls {
    /// Calls that wait for their batch.
    pub(super) waiting: RefCell<Vec<PermitsRequest>>,
    under_way: Cell<usize>,
}

thread_local! {
    // The worker has an id, not its link: a reload may replace the link, and then the permits of
    // the old link would be withheld as those of a vanished gateway.
    /// Id of this worker, unique among the workers of all gateways.
    static WORKER: [u8; 8] = RandomState::new().hash_one(std::process::id()).to_le_bytes();
    /// Number of the worker's last call.
    static NUMBER: Cell<u64> = const { Cell::new(0) };
}

impl PermitsCalls {
    /// Returns whether calls wait for their batch or for a reply.
    pub(super) fn are_waiting(&self) -> bool {
        self.under_way.get() > 0 || !self.waiting.borrow().is_empty()
    }

    /// Sends calls. Returns the replies.
    pub(super) async fn carry(
        &self,
        store: &Store,
        asks: &[PermitsRequest],
    ) -> Vec<Result<KeyPermitsReply, Error>> {
        if asks.is_empty() {
            return Vec::new();
        }
        let kept = |ask: &PermitsRequest| ask.zone.permit_lifetime();
        let calls = asks.iter().map(|ask| (&ask.name[..], kept(ask), ask.call));
        let calls: Vec<_> = calls.collect();
        let calls = InFlightCalls {
            gateway: WORKER.with(|id| *id),
            calls: &calls,
            at: None,
        };
        let _counted = Counted::new(&self.under_way);
        store.key_permits(&calls).await
    }
}

/// Increments a counter until it is dropped.
struct Counted<'a>(&'a Cell<usize>);

impl<'a> Counted<'a> {
    fn new(count: &'a Cell<usize>) -> Self {
        count.set(count.get() + 1);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
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
            zone: Rc::clone(self),
            name: [&self.permits_name, key].concat(),
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
