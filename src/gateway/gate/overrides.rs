//! Overrides of a gate.

use std::num::NonZeroUsize;

use limit::{GateLimits, Rate};
use serde::Serialize;

use crate::overrides::{Overridable, Override};

/// Override of a gate.
pub type GateOverride = Override<GateValues>;

/// Values of a gate that can be overridden. Serialized for the API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GateValues {
    /// Rate; `None`: the configured rate.
    pub rate: Option<Rate>,
    /// Maximum number of requests in flight; `None`: the configured one.
    pub max_in_flight: Option<NonZeroUsize>,
    /// Whether the gate is paused: no request departs.
    pub pause: bool,
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

impl Overridable for GateValues {
    fn named(&self) -> [(&'static str, Option<String>); 3] {
        let permits = self.max_in_flight;
        [
            ("rate", self.rate.map(|rate| format!("rate {rate}"))),
            (
                "max_in_flight",
                permits.map(|most| format!("max_in_flight {most}")),
            ),
            ("pause", self.pause.then(|| "paused".to_owned())),
        ]
    }
}

impl GateValues {
    /// Checks that an origin can have an override with these values.
    ///
    /// # Errors
    ///
    /// Returns the reason if it cannot.
    pub fn check_fits(&self, origin: &config::Origin) -> Result<(), OverrideRefusal> {
        OverrideRefusal::check(origin, self.rate.is_some(), self.max_in_flight.is_some())
    }

    /// Returns the limits of `file`, with the overridden values instead of those of the file.
    pub(super) fn applied_to(&self, file: GateLimits) -> GateLimits {
        let permits = self.max_in_flight.map(NonZeroUsize::get);
        GateLimits {
            rate: self.rate.or(file.rate),
            max_in_flight: permits.or(file.max_in_flight),
            ..file
        }
    }
}
