//! What became of the requests of zones in the last ten minutes, to compare a replay with.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use limit::Moment;

use super::counts;
use super::headline::words::part;
use super::steps::Steps;
use super::views::Happened;
use crate::http::gateway::Gateway;
use crate::time::clock;
use crate::zone::Zone;

/// How many steps are kept. The oldest is ten minutes old.
const STEPS: usize = 61;
/// Of how many zones they are kept, 2 KB for each. Of more, what happened is not known.
const MAX_ZONES: usize = 500;
/// The first step of a zone comes sooner after its start.
const FIRST_STEP: Duration = Duration::from_secs(15);

/// The counts of zones at several moments of the last ten minutes.
#[derive(Clone)]
pub(crate) struct Outcomes(Arc<Mutex<ZoneSteps>>);

/// By the names of zones, and when they started: a zone that starts again counts from zero.
type ZoneSteps = Steps<(String, Moment), (Moment, Happened)>;

impl Default for Outcomes {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Steps::new(MAX_ZONES, STEPS))))
    }
}

impl Outcomes {
    fn lock(&self) -> MutexGuard<'_, ZoneSteps> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A second is over.
    pub(crate) fn tick(&self, gateway: &Gateway) {
        self.lock().tick(|| {
            let now = clock::now();
            let zones = gateway.zones().iter().take(MAX_ZONES);
            zones.map(move |zone| (id(zone), (now, Happened::until_now(zone))))
        });
    }

    /// What happened in a zone since about this moment.
    pub(crate) fn since(&self, since: Moment, zone: &Zone) -> Option<Happened> {
        let past = before(&self.lock(), &id(zone), since)?;
        Happened::until_now(zone).since(&past)
    }
}

fn id(zone: &Zone) -> (String, Moment) {
    (zone.settings().name.clone(), zone.started())
}

/// The counts of a zone at the last step up to this moment, or else at the first one.
fn before(kept: &ZoneSteps, zone: &(String, Moment), since: Moment) -> Option<Happened> {
    let steps = kept.of(zone)?;
    if let Some(step) = steps.iter().rev().find(|(time, _)| *time <= since) {
        return Some(step.1);
    }
    let (first, counted) = steps.front()?;
    // It began at zero. Nothing is missing if its first step is still there.
    let is_whole = first.since(zone.1) < FIRST_STEP;
    Some(if is_whole {
        Happened::default()
    } else {
        *counted
    })
}

impl Happened {
    /// All requests of a zone so far.
    fn until_now(zone: &Zone) -> Self {
        let totals = counts::totals(|status| zone.metrics().counted(status));
        let rejected = totals.rejected + totals.rejected_dry_run;
        let went_on =
            totals.passed + totals.delayed + totals.delayed_dry_run + totals.rejected_elsewhere;
        Self::of(
            rejected + totals.cancelled + went_on,
            rejected,
            totals.cancelled,
        )
    }

    fn of(requests: u64, rejected: u64, cancelled: u64) -> Self {
        Self {
            requests,
            rejected,
            cancelled,
            share_rejected: part(rejected, requests),
        }
    }

    /// `None` if the zone counts from zero since then.
    fn since(&self, past: &Self) -> Option<Self> {
        Some(Self::of(
            self.requests.checked_sub(past.requests)?,
            self.rejected.checked_sub(past.rejected)?,
            self.cancelled.checked_sub(past.cancelled)?,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_is_counted_from_the_step_before_and_the_steps_are_bounded() {
        let mut kept = Steps::new(MAX_ZONES, STEPS);
        let at = |seconds: u64| Moment::from_nanos(seconds * 1_000_000_000);
        let counted = |n: u64| Happened::of(4 * n, n, 2 * n);
        let zone = ("z".to_owned(), at(0));
        for n in 0..100 {
            let zones = [(zone.clone(), (at(10 * n), counted(n)))].into_iter();
            kept.keep(zones);
        }
        assert_eq!(kept.of(&zone).expect("it is known").len(), STEPS);
        let since = |seconds| {
            let past = before(&kept, &zone, at(seconds)).expect("it is known");
            counted(100).since(&past).expect("it only grows").requests
        };
        assert_eq!([since(990), since(989), since(500)], [4, 8, 200]);
        assert_eq!(since(0), 4 * 61, "no more is known");
        assert!(before(&kept, &("other".to_owned(), at(0)), at(1)).is_none());
        assert_eq!(counted(3).since(&counted(4)), None);
    }
    #[test]
    fn a_zone_that_starts_again_counts_from_zero() {
        let mut kept = Steps::new(MAX_ZONES, STEPS);
        let at = |seconds: u64| Moment::from_nanos(seconds * 1_000_000_000);
        let counted = |requests| Happened::of(requests, 0, 0);
        let [old, new] = [0, 105].map(|started| ("z".to_owned(), at(started)));
        kept.keep([(old.clone(), (at(100), counted(30)))].into_iter());
        kept.keep([(new.clone(), (at(110), counted(5)))].into_iter());
        let since = |zone| before(&kept, zone, at(106)).map(|past| past.requests);
        assert_eq!([since(&old), since(&new)], [None, Some(0)]);
    }
}
