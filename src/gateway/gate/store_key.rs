//! Key in the store that the gates of one origin share, and its link.
//!
//! Used by the calls for slots, permits and back-off.

use std::hash::BuildHasher;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use limit::Moment;

use crate::observe::escape::cut_quoted;
use crate::store::{Error, Link};
use crate::time::clock;
use crate::zone::{StoreHealth, StoreRefusal};

/// Minimum interval between two log lines about a refused key.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Key in the store that the gates of an origin share, with the link of one worker.
pub(super) struct StoreKey {
    store_health: Arc<StoreHealth>,
    pub(super) link: Rc<Link>,
    pub(super) origin: String,
    /// Name of the key in the store.
    pub(super) name: Vec<u8>,
    /// Identifier of this gateway.
    pub(super) gateway: [u8; 8],
    /// Error of the last call, if the store is out.
    error: Option<Error>,
    /// Instant at which a refusal was last logged.
    refused: Option<Moment>,
}

/// Returns a new random identifier for this origin's gate at this gateway.
///
/// It differs from those of all other gateways.
pub(super) fn new_gateway(origin: &str) -> u64 {
    let seed = (clock::wall().as_nanos(), std::process::id(), origin);
    RandomState::default().hash_one(seed)
}

impl StoreKey {
    /// Returns the key of this kind and format, for calls from this thread. Does not connect.
    pub(super) fn new(
        store_health: &Arc<StoreHealth>,
        origin: &str,
        gateway: u64,
        (kind, form): (&str, u8),
    ) -> Self {
        Self {
            store_health: Arc::clone(store_health),
            link: Link::here(store_health),
            origin: origin.to_owned(),
            name: format!("{kind}:{origin}.{form}").into_bytes(),
            gateway: gateway.to_le_bytes(),
            error: None,
            refused: None,
        }
    }

    /// Forgets the error of the previous call, as another call begins.
    pub(super) fn begin(&mut self) {
        self.error = None;
    }

    /// Records why a call was not answered. `what`: text for the log if the store refused the key.
    pub(super) fn note(&mut self, error: &Error, what: &str) -> StoreRefusal {
        if error.is_outage() {
            self.error = Some(error.clone());
        } else {
            self.log_refusal(error, what);
        }
        error.into()
    }

    /// Logs that the store refused the key, at most once per [`LOG_INTERVAL`].
    pub(super) fn log_refusal(&mut self, error: &Error, what: &str) {
        let now = clock::now();
        if self
            .refused
            .is_some_and(|logged| now.since(logged) < LOG_INTERVAL)
        {
            return;
        }
        self.refused = Some(now);
        let redis = self.store_health.settings();
        let key = [redis.prefix.as_bytes(), &self.name].concat();
        let remedy = error.remedy();
        tracing::error!(store = %redis.url, origin = self.origin, key = %cut_quoted(&key), %error, "the store refused the key of an origin's {what}; {remedy}");
    }

    /// Waits until the store is worth another try. Returns whether it accepts writes then.
    ///
    /// If an outage ended the last call, the store counts as out from now on.
    pub(super) async fn is_back(&mut self) -> bool {
        if let Some(error) = self.error.take() {
            self.link.lose(&error);
        }
        self.link.is_back().await
    }
}
