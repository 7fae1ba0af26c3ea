//! What a gate has in place of the values of the file, for a while.

use std::num::NonZeroUsize;
use std::sync::Arc;

use limit::{GateLimits, Moment, Rate};

/// Values in place of those of the file, until they expire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateOverride {
    /// `None`: the rate of the file.
    pub rate: Option<Rate>,
    /// Requests at the origin at once; `None`: as in the file.
    pub max_in_flight: Option<NonZeroUsize>,
    /// No request leaves.
    pub is_paused: bool,
    /// When it was set first.
    pub since: Moment,
    /// When it ends.
    pub until: Moment,
    /// Who set it: the name of a token, or an address.
    pub by: Arc<str>,
    /// Who renews it before it ends; `None`: nobody. Nobody else may replace it meanwhile.
    pub owner: Option<Arc<str>>,
}

/// Why an origin cannot have an override.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It has no gate.
    NoGate,
    /// Several gateways share its rate.
    SharedRate,
    /// Several gateways share its places.
    SharedPlaces,
}

impl Unfit {
    /// Checks that an origin can have another rate, or another number of places, at this gateway
    /// alone.
    ///
    /// # Errors
    ///
    /// Returns why it cannot.
    pub fn check(origin: &config::Origin, sets_rate: bool, sets_places: bool) -> Result<(), Self> {
        if origin.gate().is_none() {
            return Err(Self::NoGate);
        }
        if sets_rate && origin.shared_rate().is_some() {
            return Err(Self::SharedRate);
        }
        if sets_places && origin.shared_places().is_some() {
            return Err(Self::SharedPlaces);
        }
        Ok(())
    }
}

impl GateOverride {
    /// Whether it sets the same values, whoever set it and however long it lasts.
    pub fn has_values_of(&self, other: &Self) -> bool {
        let values = |it: &Self| (it.rate, it.max_in_flight, it.is_paused);
        values(self) == values(other)
    }

    /// Checks that an origin can have it.
    ///
    /// # Errors
    ///
    /// Returns why it cannot.
    pub fn check_fits(&self, origin: &config::Origin) -> Result<(), Unfit> {
        Unfit::check(origin, self.rate.is_some(), self.max_in_flight.is_some())
    }

    /// What the gate lets through instead of `file`.
    pub(super) fn over(&self, file: GateLimits) -> GateLimits {
        let places = self.max_in_flight.map(NonZeroUsize::get);
        GateLimits {
            rate: self.rate.or(file.rate),
            max_in_flight: places.or(file.max_in_flight),
            ..file
        }
    }
}
