//! Finds the rate that a headline may advise, while it lasts.
//!
//! The arrivals of a zone are replayed as `what-if` does, seldom and for a bounded time, on a
//! thread for blocking work: never on a worker.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix_web::web;
use tokio::time::timeout;

use super::api::what_if::advise;
use super::views::{Plain, RateAdvice, Sample};
use crate::http::gateway::Gateway;
use crate::limit::Moment;
use crate::time::clock;

/// The shortest time between two replays.
const EVERY: Duration = Duration::from_secs(5);
/// A replay may take one part in so many of a processor.
const REST: u32 = 20;
/// How long the workers may take to hand out their arrivals.
const COLLECTED_IN: Duration = Duration::from_secs(1);
/// How long the replays of one advice may take together.
const REPLAYED_IN: Duration = Duration::from_millis(400);
/// An advice that is older is forgotten.
const KEPT: Duration = Duration::from_secs(60);

/// Asks for advice, and gives it to samples.
#[derive(Default)]
pub(super) struct Advisor(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The last advice, the zone that it is for, and when it was found.
    advice: Option<(Plain, RateAdvice, Moment)>,
    is_busy: bool,
    /// `None`: at once.
    next: Option<Moment>,
}

impl Advisor {
    /// Gives the zone of a sample the advice that there is for it.
    pub(super) fn advise(&self, sample: &mut Sample, now: Moment) {
        let state = state(&self.0);
        let Some((name, advice, at)) = &state.advice else {
            return;
        };
        if now.since(*at) > KEPT {
            return;
        }
        if let Some(zone) = sample.zones.iter_mut().find(|zone| zone.name == *name) {
            zone.advice = Some(advice.clone());
        }
    }

    /// Starts to look for advice if the headline of the sample needs it, and it is time.
    pub(super) fn ask(&self, sample: &Sample, gateway: &Arc<Gateway>, now: Moment) {
        let headline = &sample.headline;
        if !["rejecting", "waiting"].contains(&headline.cause.as_str()) {
            return;
        }
        let Some(name) = headline.about.clone() else {
            return;
        };
        let mut zones = gateway.zones().iter().enumerate();
        let Some((index, _)) = zones.find(|(_, zone)| Plain::new(&zone.settings().name) == name)
        else {
            return;
        };
        {
            let mut state = state(&self.0);
            let is_other = state.advice.as_ref().is_some_and(|it| it.0 != name);
            if state.is_busy || (state.next.is_some_and(|next| now < next) && !is_other) {
                return;
            }
            state.is_busy = true;
        }
        let (kept, gateway) = (Arc::clone(&self.0), Arc::clone(gateway));
        actix_rt::spawn(async move {
            let begun = clock::now();
            let advice = look(gateway, index).await;
            let now = clock::now();
            let mut state = state(&kept);
            state.is_busy = false;
            state.next = Some(now + EVERY.max(now.since(begun) * REST));
            state.advice = advice.map(|advice| (name, advice, now));
        });
    }
}

async fn look(gateway: Arc<Gateway>, index: usize) -> Option<RateAdvice> {
    let (arrivals, rate) = {
        let zone = gateway.zones().get(index)?;
        let arrivals = timeout(COLLECTED_IN, zone.arrivals()).await.ok()?;
        (
            arrivals,
            zone.overrides().zone.as_ref().and_then(|it| it.rate),
        )
    };
    let found = web::block(move || {
        let deadline = clock::now() + REPLAYED_IN;
        let mut settings = gateway.settings().clone();
        if let (Some(rate), Some(zone)) = (rate, settings.zones.get_mut(index)) {
            zone.rate = rate;
        }
        advise(&arrivals, &settings, index, deadline)
    });
    found.await.ok().flatten()
}

fn state(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
