//! Temporary overrides of a gate's configured values.

use std::num::NonZeroUsize;
use std::sync::Arc;

use limit::{GateLimits, Moment, Rate};

/// Values that apply instead of those of the file, until they expire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateOverride {
    /// Overridden rate; `None`: the rate of the file.
    pub rate: Option<Rate>,
    /// Overridden number of requests at the origin at once; `None`: the number of the file.
    pub max_in_flight: Option<NonZeroUsize>,
    /// Whether the gate is paused: no request leaves.
    pub is_paused: bool,
    /// Instant at which the override was first set.
    pub since: Moment,
    /// Instant at which the override expires.
    pub until: Moment,
    /// Token name or address of the client that set the override.
    pub by: Arc<str>,
    /// Owner that renews the override before it expires; `None`: no owner.
    ///
    /// Only the owner may replace it meanwhile.
    pub owner: Option<Arc<str>>,
}

/// Reason for which an origin cannot have an override.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverrideRefusal {
    /// The origin has no gate.
    NoGate,
    /// Several gateways share the origin's rate.
    SharedRate,
    /// Several gateways share the origin's permits.
    SharedPermits,
}

impl OverrideRefusal {
    /// Checks that this gateway alone may override the rate or the permits of an origin.
    ///
    /// # Errors
    ///
    /// Returns the reason if it may not.
    pub fn check(origin: &config::Origin, sets_rate: bool, sets_permits: bool) -> Result<(), Self> {
        if origin.gate().is_none() {
            return Err(Self::NoGate);
        }
        if sets_rate && origin.shared_rate().is_some() {
            return Err(Self::SharedRate);
        }
        if sets_permits && origin.shared_permits().is_some() {
            return Err(Self::SharedPermits);
        }
        Ok(())
    }
}

impl GateOverride {
    /// Returns whether it sets the same values as `other`. Owner and times may differ.
    pub fn has_values_of(&self, other: &Self) -> bool {
        let values = |it: &Self| (it.rate, it.max_in_flight, it.is_paused);
        values(self) == values(other)
    }

    /// Checks that an origin can have this override.
    ///
    /// # Errors
    ///
    /// Returns the reason if it cannot.
    pub fn check_fits(&self, origin: &config::Origin) -> Result<(), OverrideRefusal> {
        OverrideRefusal::check(origin, self.rate.is_some(), self.max_in_flight.is_some())
    }

    /// Returns the limits of `file` with the overridden values in place.
    pub(super) fn over(&self, file: GateLimits) -> GateLimits {
        let permits = self.max_in_flight.map(NonZeroUsize::get);
        GateLimits {
            rate: self.rate.or(file.rate),
            max_in_flight: permits.or(file.max_in_flight),
            ..file
        }
    }
}
