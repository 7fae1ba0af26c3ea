use std::hash::BuildHasher;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;

use crate::limit::{Ask, LearnedReply, Moment};
use crate::observe::escape::cut_quoted;
use crate::store::{BACKOFF_FORM, BackoffCall, Error, Link};
use crate::time::clock;
use crate::zone::StoreHealth;

/// How often a refusal of the key is logged.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// A gate's way to what gateways have learned of its origin.
///
/// One task of one worker has it, and uses the link of that worker.
pub(super) struct LearningLink {
    store_health: Arc<StoreHealth>,
    link: Rc<Link>,
    origin: String,
    /// Its name in the store.
    key: Vec<u8>,
    /// When a refusal was last logged.
    refused: Option<Moment>,
}

impl LearningLink {
    /// The way of the gate of this origin, from this thread. Does not connect.
    pub(super) fn new(store_health: &Arc<StoreHealth>, origin: &str) -> Self {
        Self {
            store_health: Arc::clone(store_health),
            link: Link::here(store_health),
            origin: origin.to_owned(),
            key: format!("backoff:{origin}.{BACKOFF_FORM}").into_bytes(),
            refused: None,
        }
    }

    /// What tells this gateway from others.
    pub(super) fn author(origin: &str) -> u64 {
        let seed = (clock::wall().as_nanos(), std::process::id(), origin);
        RandomState::default().hash_one(seed)
    }

    /// Asks, and tells; `None`: the store has not answered in time, or refuses.
    pub(super) async fn ask(&mut self, ask: &Ask) -> Option<LearnedReply> {
        let call = BackoffCall {
            key: &self.key,
            ask,
            at: None,
        };
        let asked = self.link.store().exchange_backoff(&call);
        let (told, _) = self.link.run(asked).await;
        told.inspect_err(|error| self.note(error)).ok()
    }

    fn note(&mut self, error: &Error) {
        // Others tell of an outage.
        if error.is_outage() {
            return;
        }
        let now = clock::now();
        if self
            .refused
            .is_none_or(|told| now.since(told) >= TELL_EVERY)
        {
            self.refused = Some(now);
            let redis = self.store_health.settings();
            let key = [redis.prefix.as_bytes(), &self.key].concat();
            let remedy = error.remedy();
            tracing::error!(store = %redis.url, origin = self.origin, key = cut_quoted(&key), %error, "the store refused the key of an origin's back-off, so this gateway backs off alone; {remedy}");
        }
    }

    /// Waits until the store is worth another question.
    pub(super) async fn wait_until_back(&self) {
        while !self.link.is_back().await {}
    }
}
