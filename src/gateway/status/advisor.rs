//! Finds the rate that a headline may advise: under it, fewer requests would wait or be rejected.
//!
//! The *headline* says what is most important about the gateway now. It is made from a *finding*: a
//! cause, with the zone or origin that it is about.
//!
//! The last requests of a zone (its *arrivals*) are decided again with other rates, as in
//! `what_if`. Such replays are rare, have a time limit, and run on a thread for blocking work,
//! never on a worker.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix_web::web;
use limit::Moment;
use tokio::time::timeout;

use super::headline::finding::Cause;
use super::plain::Plain;
use super::sample::Sample;
use super::what_if::{advise, in_force};
use crate::http::gateway::Gateway;
use crate::time::clock;
use crate::zone::Zone;
use crate::zone::report::sample::RateAdvice;

/// Minimum interval of searches.
const SEARCH_INTERVAL: Duration = Duration::from_secs(5);
/// Minimum interval of searches after one that tried no faster rate.
///
/// Then most requests are of keys that have not sent for long enough to know how fast they send.
const EARLY_INTERVAL: Duration = Duration::from_secs(2);
/// Searches take at most 1/`SHARE_DIVISOR` of a processor's time.
const SHARE_DIVISOR: u32 = 20;
/// Time limit for the workers to return their arrivals.
const MAX_COLLECTING: Duration = Duration::from_secs(1);
/// Time limit of all replays for one piece of advice.
const MAX_REPLAYING: Duration = Duration::from_millis(400);
/// Lifetime of a piece of advice.
const MAX_AGE: Duration = Duration::from_secs(60);

/// Looks for advice and adds it to samples.
#[derive(Default)]
pub(super) struct Advisor(Arc<Mutex<State>>);

/// State of the searches.
#[derive(Default)]
struct State {
    last: Option<Found>,
    /// Whether a search is running.
    is_busy: bool,
    /// Instant of the next search; `None`: at once.
    next: Option<Moment>,
}

/// A piece of advice and its subject.
struct Found {
    advice: RateAdvice,
    about: Subject,
    at: Moment,
}

/// Zone that the advice is about, and the instant at which the zone last started with no keys.
///
/// A reload that changes the zone's `key` starts it again. Then earlier advice is about the
/// requests of other keys.
type Subject = (Plain, Moment);

/// Returns the subject of advice about this zone.
fn subject(zone: &Zone) -> Subject {
    (Plain::new(&zone.settings().name), zone.started())
}

impl Advisor {
    /// Adds the current advice to the zone of a sample, if there is one.
    pub(super) fn advise(&self, sample: &mut Sample, gateway: &Gateway, now: Moment) {
        let state = lock(&self.0);
        let Some(found) = &state.last else {
            return;
        };
        let mut zones = gateway.zones().iter();
        if now.since(found.at) > MAX_AGE || !zones.any(|zone| subject(zone) == found.about) {
            return;
        }
        let mut zones = sample.zones.iter_mut();
        if let Some(zone) = zones.find(|zone| zone.name == found.about.0) {
            zone.advice = Some(found.advice.clone());
        }
    }

    /// Starts a search if the headline of the sample needs advice and the interval is over.
    pub(super) fn search_if_needed(&self, sample: &Sample, gateway: &Arc<Gateway>, now: Moment) {
        let finding = &sample.headline.finding;
        if !matches!(finding.cause, Cause::Rejecting | Cause::Waiting) {
            return;
        }
        let zones = gateway.zones().iter().map(|zone| subject(zone));
        let mut zones = zones.enumerate();
        let about = zones.find(|(_, zone)| finding.about.as_ref() == Some(&zone.0));
        let Some((index, about)) = about else {
            return;
        };
        {
            let mut state = lock(&self.0);
            // Advice about another zone helps nobody now: the search need not wait for its
            // interval.
            let is_other = state.last.as_ref().is_some_and(|last| last.about != about);
            if state.is_busy || (state.next.is_some_and(|next| now < next) && !is_other) {
                return;
            }
            state.is_busy = true;
        }
        let (shared, gateway) = (Arc::clone(&self.0), Arc::clone(gateway));
        actix_rt::spawn(async move {
            let (advice, took) = search(gateway, index).await.unzip();
            let interval = match &advice {
                Some(advice) if advice.faster.is_empty() => EARLY_INTERVAL,
                _ => SEARCH_INTERVAL,
            };
            let now = clock::now();
            let mut state = lock(&shared);
            state.is_busy = false;
            // The next search waits for a multiple of the duration of this one, so that searches
            // take at most their share of a processor's time.
            state.next = Some(now + interval.max(took.unwrap_or_default() * SHARE_DIVISOR));
            state.last = advice.map(|advice| Found {
                advice,
                about,
                at: now,
            });
        });
    }
}

/// Searches for advice. Returns it with the duration of its replays.
async fn search(gateway: Arc<Gateway>, index: usize) -> Option<(RateAdvice, Duration)> {
    let arrivals = gateway.zones().get(index)?.arrivals();
    let arrivals = timeout(MAX_COLLECTING, arrivals).await.ok()?;
    let found = web::block(move || {
        let began = clock::now();
        let settings = in_force(&gateway, index);
        let advice = advise(&arrivals, &settings, index, began + MAX_REPLAYING)?;
        Some((advice, clock::now().since(began)))
    });
    found.await.ok().flatten()
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
