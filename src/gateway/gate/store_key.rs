//! Key in Redis (the *store*) that the gates of one origin share, and the link to it.
//!
//! Used by the calls for slots, permits and back-off, which have one key each. `store_task` makes
//! the calls.

use std::hash::BuildHasher;
use std::num::NonZeroU64;
use std::rc::Rc;
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::observe::escape::cut_quoted;
use crate::observe::metrics::{CountBy, StoreResult};
use crate::observe::throttle::Throttle;
use crate::store::{Error, Link};
use crate::time::clock;
use crate::zone::{StoreError, StoreHealth, store_result};

/// Interval of log lines about refusals, in seconds.
const REFUSAL_LOG_SECONDS: NonZeroU64 = NonZeroU64::new(60).expect("it is not zero");

/// Key in the store that the gates of an origin share, with the link of one worker.
pub(super) struct StoreKey {
    store_health: Arc<StoreHealth>,
    pub(super) link: Rc<Link>,
    origin: String,
    /// Name of the key in the store.
    pub(super) name: Vec<u8>,
    /// Identifier of this gateway.
    pub(super) gateway: [u8; 8],
    /// Outage of the store that the last call met; `None`: none, or it was reported.
    outage: Option<Error>,
    /// Counters of the calls.
    calls: Arc<CountBy<StoreResult>>,
    /// Limits the log lines about refusals.
    refusals: Throttle,
}

/// Returns a new random identifier for this origin's gate at this gateway.
///
/// It differs from those of all other gateways.
pub(super) fn new_gateway(origin: &str) -> u64 {
    let seed = (clock::wall().as_nanos(), std::process::id(), origin);
    RandomState::default().hash_one(seed)
}

impl StoreKey {
    /// Returns the key `name`, for calls from this thread. Does not connect.
    pub(super) fn new(
        store: &Arc<StoreHealth>,
        origin: &str,
        gateway: u64,
        name: String,
        calls: Arc<CountBy<StoreResult>>,
    ) -> Self {
        Self {
            store_health: Arc::clone(store),
            link: Link::here(store),
            name: name.into_bytes(),
            origin: origin.to_owned(),
            gateway: gateway.to_le_bytes(),
            outage: None,
            calls,
            refusals: Throttle::every(REFUSAL_LOG_SECONDS),
        }
    }

    /// Counts a call by its reply, and logs a refusal of the key. Returns the reply.
    ///
    /// An outage of the store is kept for [`wait_until_back`](Self::wait_until_back). `what`: end
    /// of the log line, after "an origin's".
    pub(super) fn record_reply<T>(
        &mut self,
        reply: Result<T, Error>,
        what: &str,
    ) -> Result<T, StoreError> {
        self.calls.add(store_result(reply.as_ref().err()), 1);
        let (outage, refusal) = match reply.as_ref().err() {
            Some(error) if error.is_outage() => (Some(error.clone()), None),
            refusal => (None, refusal),
        };
        self.outage = outage;
        if let Some(error) = refusal {
            self.log_refusal(error, what);
        }
        reply
    }

    /// Forgets an outage that ended the last call, so that the store does not count as out for it.
    pub(super) fn forget_outage(&mut self) {
        self.outage = None;
    }

    /// Logs that the store refused the key, at most once a minute.
    fn log_refusal(&self, error: &Error, what: &str) {
        if self.refusals.show(clock::now()).is_none() {
            return;
        }
        let redis = self.store_health.settings();
        let key = [redis.prefix.as_bytes(), &self.name].concat();
        let remedy = error.remedy();
        tracing::error!(store = %redis.url, origin = self.origin, key = %cut_quoted(&key), %error, "the store refused the key of an origin's {what}; {remedy}");
    }

    /// Waits until the store was probed, or for a while. Returns whether it is available then.
    ///
    /// If an outage ended the last call, the store counts as out from now on.
    pub(super) async fn wait_until_back(&mut self) -> bool {
        if let Some(error) = self.outage.take() {
            self.link.lose(&error);
        }
        self.link.wait_for_probe().await
    }
}
