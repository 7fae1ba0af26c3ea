//! Finds the rate that a headline may advise, while it lasts.
//!
//! The arrivals of a zone are replayed as `what-if` does, seldom and for a bounded time, on a
//! thread for blocking work: never on a worker.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix_web::web;
use limit::Moment;
use tokio::time::timeout;

use super::views::{Plain, RateAdvice, Sample};
use super::what_if::{advise, in_force};
use crate::http::gateway::Gateway;
use crate::time::clock;
use crate::zone::Zone;

/// The shortest time between two replays.
const EVERY: Duration = Duration::from_secs(5);
/// The shortest time until the next one where it is not known yet how fast keys ask.
const SOON: Duration = Duration::from_secs(2);
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
    last: Option<Found>,
    is_busy: bool,
    /// `None`: at once.
    next: Option<Moment>,
}

/// An advice.
struct Found {
    advice: RateAdvice,
    about: Subject,
    at: Moment,
}

/// The zone that an advice is about, and when it started with no keys: a reload that changes its
/// `key` starts it again, and the advice was about the requests of other keys.
type Subject = (Plain, Moment);

fn subject(zone: &Zone) -> Subject {
    (Plain::new(&zone.settings().name), zone.started())
}

impl Advisor {
    /// Gives the zone of a sample the advice that there is for it.
    pub(super) fn advise(&self, sample: &mut Sample, gateway: &Gateway, now: Moment) {
        let state = state(&self.0);
        let Some(Found { advice, about, at }) = &state.last else {
            return;
        };
        let mut zones = gateway.zones().iter();
        if now.since(*at) > KEPT || !zones.any(|zone| subject(zone) == *about) {
            return;
        }
        let mut zones = sample.zones.iter_mut();
        if let Some(zone) = zones.find(|zone| zone.name == about.0) {
            zone.advice = Some(advice.clone());
        }
    }

    /// Starts to look for advice if the headline of the sample needs it, and it is time.
    pub(super) fn ask(&self, sample: &Sample, gateway: &Arc<Gateway>, now: Moment) {
        let headline = &sample.headline;
        if !["rejecting", "waiting"].contains(&headline.cause.as_str()) {
            return;
        }
        let zones = gateway.zones().iter().map(|zone| subject(zone));
        let mut zones = zones.enumerate();
        let about = zones.find(|(_, zone)| headline.about.as_ref() == Some(&zone.0));
        let Some((index, about)) = about else {
            return;
        };
        {
            let mut state = state(&self.0);
            let is_other = state.last.as_ref().is_some_and(|it| it.about != about);
            if state.is_busy || (state.next.is_some_and(|next| now < next) && !is_other) {
                return;
            }
            state.is_busy = true;
        }
        let (kept, gateway) = (Arc::clone(&self.0), Arc::clone(gateway));
        actix_rt::spawn(async move {
            let (advice, took) = look(gateway, index).await.unzip();
            let every = match &advice {
                Some(advice) if advice.faster.is_empty() => SOON,
                _ => EVERY,
            };
            let now = clock::now();
            let mut state = state(&kept);
            state.is_busy = false;
            state.next = Some(now + every.max(took.unwrap_or_default() * REST));
            state.last = advice.map(|advice| Found {
                advice,
                about,
                at: now,
            });
        });
    }
}

/// Looks for advice. Returns it with the time that its replays took.
async fn look(gateway: Arc<Gateway>, index: usize) -> Option<(RateAdvice, Duration)> {
    let arrivals = gateway.zones().get(index)?.arrivals();
    let arrivals = timeout(COLLECTED_IN, arrivals).await.ok()?;
    let found = web::block(move || {
        let began = clock::now();
        let settings = in_force(&gateway, index);
        let advice = advise(&arrivals, &settings, index, began + REPLAYED_IN)?;
        Some((advice, clock::now().since(began)))
    });
    found.await.ok().flatten()
}

fn state(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
