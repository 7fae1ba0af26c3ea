//! Parameters last sent to a zone's supervisors: settings of the file, overrides, and the store.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use limit::{NewKeyBudget, Rate};

use super::arrivals::MAX_ARRIVALS;
use super::overrides::Overrides;
use super::store_link::Sharing;
use super::supervisor::Tuning;

/// Parameters last sent to the zone's supervisors. All versions of the zone share them.
///
/// Settings come with a reload, overrides from the admin port. A change of either holds the lock
/// until it is sent, so that the supervisors never return to older parameters.
pub(super) struct ZoneParameters {
    /// Parameters that were last sent.
    published: Mutex<PublishedParameters>,
    /// Whether an override sets the dry run. Every request reads this.
    has_dry_run: AtomicBool,
}

/// Parameters of all supervisors of a zone.
pub(super) struct PublishedParameters {
    pub(super) settings: Arc<config::Zone>,
    /// Store of the zone; `None` if it is kept in memory.
    pub(super) sharing: Option<Sharing>,
    pub(super) overrides: Arc<Overrides>,
    /// Budget for new keys that all supervisors share. It never changes.
    pub(super) new_keys: Arc<NewKeyBudget>,
}

impl PublishedParameters {
    /// Creates the parameters of a zone without overrides.
    pub(super) fn new(settings: config::Zone, sharing: Option<Sharing>) -> Self {
        Self {
            settings: Arc::new(settings),
            sharing,
            overrides: Arc::default(),
            new_keys: Arc::default(),
        }
    }

    /// Returns the rate in force for keys without a plan.
    pub(super) fn rate(&self) -> Rate {
        self.overrides.zone_rate().unwrap_or(self.settings.rate)
    }

    /// Returns the settings of the supervisor with this index, one of `count`.
    ///
    /// `max_keys` is divided evenly, with at least one for each supervisor.
    pub(super) fn tuning(&self, index: usize, count: usize) -> Tuning {
        let zone_max_keys = self.settings.max_keys.get();
        // The first supervisors get one key more if the division leaves a remainder.
        let max_keys = zone_max_keys / count + usize::from(index < zone_max_keys % count);
        Tuning {
            zone: Arc::clone(&self.settings),
            rate: self.rate(),
            max_keys: NonZeroUsize::new(max_keys).unwrap_or(NonZeroUsize::MIN),
            new_keys: Arc::clone(&self.new_keys),
            overrides: Arc::clone(&self.overrides),
            max_arrivals: MAX_ARRIVALS / count,
            sharing: self.sharing.clone(),
        }
    }
}

impl ZoneParameters {
    pub(super) fn new(parameters: PublishedParameters) -> Self {
        Self {
            published: Mutex::new(parameters),
            has_dry_run: AtomicBool::new(false),
        }
    }

    /// Locks the parameters. The caller sends a change to the supervisors before it unlocks.
    pub(super) fn published(&self) -> MutexGuard<'_, PublishedParameters> {
        let published = self.published.lock();
        published.unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the overrides in force.
    pub(super) fn overrides(&self) -> Arc<Overrides> {
        Arc::clone(&self.published().overrides)
    }

    /// Sets the overrides. The caller sends them to the supervisors.
    pub(super) fn set_overrides(&self, published: &mut PublishedParameters, overrides: Overrides) {
        let has_dry_run = overrides.has_dry_run();
        self.has_dry_run.store(has_dry_run, Ordering::Relaxed);
        published.overrides = Arc::new(overrides);
    }

    /// Returns whether `key` is in dry run. `route_dry_run` applies unless an override says
    /// otherwise.
    pub(super) fn dry_run(&self, key: &[u8], route_dry_run: bool) -> bool {
        if !self.has_dry_run.load(Ordering::Relaxed) {
            return route_dry_run;
        }
        self.overrides().dry_run(key).unwrap_or(route_dry_run)
    }
}
