use std::hash::BuildHasher;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;

use crate::limit::{Algorithm, Demand, GridAnswer, Moment, Rate};
use crate::observe::escape::cut_quoted;
use crate::observe::metrics::ClaimMetrics;
use crate::store::{Claim, Error, GRID_FORM, Link, Pace, StoreClock};
use crate::time::clock;
use crate::zone::{StoreHealth, StoreRefusal, store_result};

/// How often a refusal of the grid's key is logged.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// A gate's way to the grid that gateways share before its origin.
///
/// One task of one worker has it, and uses the link of that worker.
pub(super) struct GridLink {
    store_health: Arc<StoreHealth>,
    link: Rc<Link>,
    clock: Rc<StoreClock>,
    origin: String,
    /// The grid's name in the store.
    grid: Vec<u8>,
    /// What tells this gateway from others.
    gateway: [u8; 8],
    /// How long answers to claims take to arrive, most of them; zero before the first one.
    lead: Duration,
    claims: ClaimMetrics,
    /// Why the last claim was not answered, if the store is out.
    error: Option<Error>,
    /// When a refusal of the grid's key was last logged.
    refused: Option<Moment>,
}

impl GridLink {
    /// The way of the gate of this origin, from this thread. Does not connect.
    pub(super) fn new(store_health: &Arc<StoreHealth>, origin: &str) -> Self {
        let link = Link::here(store_health);
        let seed = (clock::wall().as_nanos(), std::process::id(), origin);
        Self {
            store_health: Arc::clone(store_health),
            clock: link.clock(),
            link,
            origin: origin.to_owned(),
            grid: format!("gate:{origin}.{GRID_FORM}").into_bytes(),
            gateway: RandomState::default().hash_one(seed).to_le_bytes(),
            lead: Duration::ZERO,
            claims: ClaimMetrics::of(origin),
            error: None,
            refused: None,
        }
    }

    /// Claims slots, and tells what waits.
    ///
    /// `rate`: that of this gateway's file, and since when. `part`: which part of its turns the
    /// gate may take.
    ///
    /// # Errors
    ///
    /// Returns an error if the store granted nothing in time. Then another claim may be, or the
    /// gate goes on alone until the store [is back](Self::is_back).
    pub(super) async fn claim(
        &mut self,
        demand: &Demand,
        part: f64,
        (rate, since): (Rate, Moment),
    ) -> Result<GridAnswer, StoreRefusal> {
        self.error = None;
        let pace = Pace::new(rate, Algorithm::LeakyBucket, since);
        // The file is refused with such a rate.
        let pace = pace.map_err(|error| StoreRefusal {
            is_answer: false,
            reason: error.to_string(),
            remedy: "",
        })?;
        let claim = Claim {
            grid: &self.grid,
            gateway: self.gateway,
            pace: &pace,
            slots: demand.slots,
            part,
            lead: self.lead,
            classes: &demand.classes,
            keys: Some(&demand.keys),
            at: None,
        };
        let (granted, trip) = self.link.run(self.link.store().claim(&claim)).await;
        self.claims.count(store_result(granted.as_ref().err()));
        let granted = granted.map_err(|error| self.note(&error))?;
        self.clock.note(trip, granted.now);
        let own = |told: Moment| self.clock.own(told);
        // Up at once, and down slowly: an answer that takes longer brings slots that have passed.
        let took = trip.received.since(own(granted.now));
        self.lead = took.max((self.lead * 7 + took) / 8);
        let named = demand.classes.iter().map(|it| it.class);
        Ok(GridAnswer {
            gateways: granted.gateways,
            part: granted.part,
            rate: granted.rate,
            free: own(granted.free),
            again: own(granted.again),
            classes: named.zip(granted.classes).collect(),
            keys: granted.keys,
            slots: granted.slots.iter().map(|slot| own(*slot)).collect(),
        })
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
            let key = [redis.prefix.as_bytes(), &self.grid].concat();
            let remedy = error.remedy();
            tracing::error!(store = %redis.url, origin = self.origin, key = cut_quoted(&key), %error, "the store refused the key of an origin's gate, which goes on alone with its part of the rate; {remedy}");
        }
        error.into()
    }

    /// Waits until the store is worth another try. Returns whether it takes writes then.
    ///
    /// It is out from now on, if that is why the last claim was not answered.
    pub(super) async fn is_back(&mut self) -> bool {
        if let Some(error) = self.error.take() {
            self.link.lose(&error);
        }
        self.link.is_back().await
    }
}
