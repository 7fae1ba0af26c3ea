//! Settings and overrides last sent to a zone's supervisors.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use limit::Rate;

use super::overrides::Overrides;
use super::store_link::Sharing;

/// Parameters last sent to the zone's supervisors. All versions of the zone share them.
///
/// Settings come with a reload, overrides from the admin port. A change of either holds the lock
/// until it is sent, so that the supervisors never return to older parameters.
pub(super) struct Steering {
    published: Mutex<PublishedParameters>,
    /// Whether an override sets the dry run. Every request reads this.
    has_dry_run: AtomicBool,
}

/// Parameters of a zone's supervisors.
pub(super) struct PublishedParameters {
    pub(super) settings: Arc<config::Zone>,
    pub(super) sharing: Option<Sharing>,
    pub(super) overrides: Arc<Overrides>,
}

impl PublishedParameters {
    /// Returns the rate in force for keys without a plan.
    pub(super) fn rate(&self) -> Rate {
        self.overrides.zone_rate().unwrap_or(self.settings.rate)
    }
}

impl Steering {
    pub(super) fn new(settings: Arc<config::Zone>, sharing: Option<Sharing>) -> Self {
        let overrides = Arc::default();
        Self {
            published: Mutex::new(PublishedParameters {
                settings,
                sharing,
                overrides,
            }),
            has_dry_run: AtomicBool::new(false),
        }
    }

    /// Locks the parameters. The caller sends a change to the supervisors before it unlocks.
    pub(super) fn published(&self) -> MutexGuard<'_, PublishedParameters> {
        self.published
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn overrides(&self) -> Arc<Overrides> {
        Arc::clone(&self.published().overrides)
    }

    /// Sets the overrides. The caller sends them to the supervisors.
    pub(super) fn set_overrides(&self, published: &mut PublishedParameters, overrides: Overrides) {
        let has_dry_run = overrides.has_dry_run();
        self.has_dry_run.store(has_dry_run, Ordering::Relaxed);
        published.overrides = Arc::new(overrides);
    }

    /// Returns whether `key` is in dry run. `of_route` applies unless an override says otherwise.
    pub(super) fn dry_run(&self, key: &[u8], of_route: bool) -> bool {
        if !self.has_dry_run.load(Ordering::Relaxed) {
            return of_route;
        }
        self.overrides().dry_run(key).unwrap_or(of_route)
    }
}
