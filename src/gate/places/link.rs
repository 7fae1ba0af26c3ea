use std::hash::BuildHasher;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;

use super::PoolTerms;
use crate::limit::{Moment, PoolCall, PoolReply};
use crate::observe::escape::cut_quoted;
use crate::observe::metrics::ClaimMetrics;
use crate::store::{Error, Link, PLACES_FORM, PlacesCall};
use crate::time::clock;
use crate::zone::{StoreHealth, StoreRefusal, store_result};

/// How often a refusal of the pool's key is logged.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// A gate's way to the pool of places that gateways share before its origin.
///
/// One task of one worker has it, and uses the link of that worker.
pub(super) struct PlacesLink {
    store_health: Arc<StoreHealth>,
    link: Rc<Link>,
    origin: String,
    /// The pool's name in the store.
    pool: Vec<u8>,
    /// What tells this gateway from others.
    gateway: [u8; 8],
    calls: ClaimMetrics,
    /// Why the last call was not answered, if the store is out.
    error: Option<Error>,
    /// When a refusal of the pool's key was last logged.
    refused: Option<Moment>,
}

impl PlacesLink {
    /// The way of the gate of this origin, from this thread. Does not connect.
    pub(super) fn new(store_health: &Arc<StoreHealth>, origin: &str) -> Self {
        let seed = (clock::wall().as_nanos(), std::process::id(), origin);
        Self {
            store_health: Arc::clone(store_health),
            link: Link::here(store_health),
            origin: origin.to_owned(),
            pool: format!("places:{origin}.{PLACES_FORM}").into_bytes(),
            gateway: RandomState::default().hash_one(seed).to_le_bytes(),
            calls: ClaimMetrics::of(origin),
            error: None,
            refused: None,
        }
    }

    /// Tells the pool what the gateway holds and wants. `terms`: of this gateway's file.
    ///
    /// # Errors
    ///
    /// Returns an error if the pool did not answer in time.
    pub(super) async fn call(
        &mut self,
        call: &PoolCall,
        terms: PoolTerms,
    ) -> Result<PoolReply, StoreRefusal> {
        self.error = None;
        let call = PlacesCall {
            pool: &self.pool,
            gateway: self.gateway,
            most: terms.most,
            orphan: terms.orphan,
            call: *call,
            at: None,
        };
        let (reply, _) = self.link.run(self.link.store().places(&call)).await;
        self.calls.count(store_result(reply.as_ref().err()));
        reply.map_err(|error| self.note(&error))
    }

    fn note(&mut self, error: &Error) -> StoreRefusal {
        if error.is_outage() {
            self.error = Some(error.clone());
            return error.into();
        }
        let now = clock::now();
        if self
            .refused
            .is_none_or(|told| now.since(told) >= TELL_EVERY)
        {
            self.refused = Some(now);
            let redis = self.store_health.settings();
            let key = [redis.prefix.as_bytes(), &self.pool].concat();
            let remedy = error.remedy();
            tracing::error!(store = %redis.url, origin = self.origin, key = cut_quoted(&key), %error, "the store refused the key of an origin's places; {remedy}");
        }
        error.into()
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
