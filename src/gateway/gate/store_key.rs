use std::hash::BuildHasher;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use limit::Moment;

use super::store_task::StoreTask;
use crate::observe::escape::cut_quoted;
use crate::store::{Error, Link};
use crate::time::clock;
use crate::zone::{StoreHealth, StoreRefusal};

/// How often a refusal of the key is logged.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// A key in the store that the gates of an origin share, and the way to it from one worker.
pub(super) struct StoreKey {
    store_health: Arc<StoreHealth>,
    pub(super) link: Rc<Link>,
    pub(super) origin: String,
    /// Its name in the store.
    pub(super) name: Vec<u8>,
    /// What tells this gateway from others.
    pub(super) gateway: [u8; 8],
    /// Why the last call was not answered, if the store is out.
    error: Option<Error>,
    /// When a refusal was last logged.
    refused: Option<Moment>,
}

/// What tells the gate of this origin at this gateway from those at others. Each is another one.
pub(super) fn new_gateway(origin: &str) -> u64 {
    let seed = (clock::wall().as_nanos(), std::process::id(), origin);
    RandomState::default().hash_one(seed)
}

impl StoreKey {
    /// The key of this kind and form that a task calls, from its thread. Does not connect.
    pub(super) fn new(task: &StoreTask, kind: &str, form: u8) -> Self {
        let (store_health, origin) = (&task.store, &task.origin);
        Self {
            store_health: Arc::clone(store_health),
            link: Link::here(store_health),
            origin: origin.clone(),
            name: format!("{kind}:{origin}.{form}").into_bytes(),
            gateway: task.gateway.to_le_bytes(),
            error: None,
            refused: None,
        }
    }

    /// Another call begins.
    pub(super) fn begin(&mut self) {
        self.error = None;
    }

    /// Notes why a call was not answered. `what`: what the log says if the store refused the key.
    pub(super) fn note(&mut self, error: &Error, what: &str) -> StoreRefusal {
        if error.is_outage() {
            self.error = Some(error.clone());
        } else {
            self.tell_refused(error, what);
        }
        error.into()
    }

    /// Logs that the store refused the key.
    pub(super) fn tell_refused(&mut self, error: &Error, what: &str) {
        let now = clock::now();
        if self
            .refused
            .is_some_and(|told| now.since(told) < TELL_EVERY)
        {
            return;
        }
        self.refused = Some(now);
        let redis = self.store_health.settings();
        let key = [redis.prefix.as_bytes(), &self.name].concat();
        let remedy = error.remedy();
        tracing::error!(store = %redis.url, origin = self.origin, key = %cut_quoted(&key), %error, "the store refused the key of an origin's {what}; {remedy}");
    }

    /// Waits until the store is worth another try. Returns whether it takes writes then.
    ///
    /// It is out from now on, if that is why the last call was not answered.
    pub(super) async fn is_back(&mut self) -> bool {
        if let Some(error) = self.error.take() {
            self.link.lose(&error);
        }
        self.link.is_back().await
    }
}
