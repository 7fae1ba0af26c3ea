use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::RandomState;
use tokio::time::sleep;

use super::clock_offset::ClockOffset;
use super::store_health::TELL_EVERY;
use super::worker_outage::WorkerOutage;
use super::{StoreHealth, StoreRefusal, result_of};
use crate::limit::{Algorithm, Demand, GridAnswer, Moment, Rate};
use crate::observe::escape::cut_quoted;
use crate::observe::metrics::ClaimMetrics;
use crate::store::{Claim, Error, GRID_FORM, Pace, Store};
use crate::time::clock;

/// A gate's link to the grid that gateways share before its origin.
///
/// One task of one worker has it. When the store fails, it is not asked again until a write
/// succeeds.
pub struct GridLink {
    store_health: Arc<StoreHealth>,
    store: Store,
    origin: String,
    /// The grid's name in the store.
    grid: Vec<u8>,
    /// What tells this gateway from others.
    gateway: [u8; 8],
    clocks: ClockOffset,
    claims: ClaimMetrics,
    /// Why the last claim was not answered.
    error: Option<Error>,
    /// When a refusal of the grid's key was last logged.
    refused: Option<Moment>,
    outage: Option<WorkerOutage>,
}

impl GridLink {
    /// A link for the gate of this origin. Does not connect.
    #[must_use]
    pub fn new(store_health: &Arc<StoreHealth>, origin: &str) -> Self {
        let settings = store_health.settings();
        let seed = (clock::wall().as_nanos(), std::process::id(), origin);
        Self {
            store: Store::new(settings.url.clone(), &settings.prefix, settings.timeout),
            store_health: Arc::clone(store_health),
            origin: origin.to_owned(),
            grid: format!("gate:{origin}.{GRID_FORM}").into_bytes(),
            gateway: RandomState::default().hash_one(seed).to_le_bytes(),
            clocks: ClockOffset::default(),
            claims: ClaimMetrics::of(origin),
            error: None,
            refused: None,
            outage: None,
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
    pub async fn claim(
        &mut self,
        demand: &Demand,
        part: f64,
        (rate, since): (Rate, Moment),
    ) -> Result<GridAnswer, StoreRefusal> {
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
            lead: self.clocks.lead(),
            classes: &demand.classes,
            at: None,
        };
        let sent = clock::now();
        let granted = self.store.claim(&claim).await;
        let received = clock::now();
        self.store_health.asked(received.since(sent));
        self.claims.count(result_of(granted.as_ref().err()));
        let granted = granted.map_err(|error| self.note(&error))?;
        self.clocks.note(sent, granted.now, received);
        let own = |told: Moment| self.clocks.own(told);
        let named = demand.classes.iter().map(|it| it.class);
        Ok(GridAnswer {
            gateways: granted.gateways,
            part: granted.part,
            rate: granted.rate,
            free: own(granted.free),
            again: own(granted.again),
            classes: named.zip(granted.classes).collect(),
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

    /// Waits a moment, and tries whether the store takes writes again.
    ///
    /// Until then, the store is shown as out.
    pub async fn is_back(&mut self) -> bool {
        if let Some(error) = self.error.take()
            && self.outage.is_none()
        {
            self.outage = Some(WorkerOutage::begin(&self.store_health, &error));
        }
        sleep(self.store.next_try()).await;
        let is_back = self.store.probe().await.is_ok();
        if is_back && let Some(outage) = self.outage.take() {
            outage.end();
        }
        is_back
    }
}
