//! Overrides of a gate: an operator replaces its rate or maximum for a while, or pauses it.
//!
//! Which values can be overridden, and how an override is set, renewed and ended. `limits` applies
//! the result to the schedule and the back-off. `api` has the requests by which operators do this.

use std::num::NonZeroUsize;
use std::sync::Arc;

use limit::{GateLimits, Moment, Rate};
use serde::Serialize;

use super::{OriginGate, State};
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
    /// Checks that an origin can have an override: it has a gate, and shares no overridden value.
    ///
    /// `sets_rate`, `sets_permits`: whether the override has a rate, and a maximum in flight.
    ///
    /// # Errors
    ///
    /// Returns the reason if it cannot.
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

    /// Returns `file`, the limits of the file, with the values of the override in their place.
    pub(super) fn applied_to(&self, file: GateLimits) -> GateLimits {
        let permits = self.max_in_flight.map(NonZeroUsize::get);
        GateLimits {
            rate: self.rate.or(file.rate),
            max_in_flight: permits.or(file.max_in_flight),
            ..file
        }
    }
}

impl State {
    /// Sets an override, or ends it. Returns the previous override.
    fn set_override(&mut self, new: Option<GateOverride>, now: Moment) -> Option<GateOverride> {
        let before = std::mem::replace(&mut self.gate_override, new.map(Box::new));
        self.set_limits_of_backoff(now);
        self.apply_unlowered(now);
        before.map(|it| *it)
    }
}

impl OriginGate {
    /// Sets an override; `None` ends it. Returns the previous override.
    ///
    /// Waiters get new times, and none is lost. Limits that the back-off has lowered stay lowered
    /// by the same factor.
    pub fn set_override(self: &Arc<Self>, new: Option<GateOverride>) -> Option<GateOverride> {
        self.change(self.lock(), |state, now| state.set_override(new, now))
    }

    /// Ends the override if `ends` is true for it, and returns it.
    pub fn end_override_if(
        self: &Arc<Self>,
        ends: impl FnOnce(&GateOverride) -> bool,
    ) -> Option<GateOverride> {
        let state = self.lock();
        if !state.gate_override.as_deref().is_some_and(ends) {
            return None;
        }
        self.change(state, |state, now| state.set_override(None, now))
    }

    /// Extends the override to the end of `new`, if both have the same owner and values.
    ///
    /// Returns whether the override was extended. An override without an owner is not.
    pub fn renew_override(&self, new: &GateOverride) -> bool {
        let mut state = self.lock();
        let is_same = |it: &GateOverride| {
            it.owner.is_some() && it.owner == new.owner && it.values == new.values
        };
        let Some(known) = state.gate_override.as_mut().filter(|it| is_same(it)) else {
            return false;
        };
        known.until = new.until;
        if known.values.pause {
            state.gate.pause(new.until);
        }
        true
    }

    /// Returns the override in force; `None` if there is none.
    pub fn override_in_force(&self) -> Option<GateOverride> {
        self.lock().gate_override.as_deref().cloned()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::time::clock;

    fn origin(fields: &str) -> config::Origin {
        let mut settings = crate::test_settings::with_fields("", fields, "");
        settings.origins.remove(0)
    }

    /// Returns a gate of 20r/s.
    fn gate() -> Arc<OriginGate> {
        OriginGate::new(&origin("rate = \"20r/s\""), None, Arc::default()).unwrap()
    }

    /// Returns an override to 5r/s for a minute, with an owner.
    fn override_with(pause: bool) -> GateOverride {
        let mut new = GateOverride::default();
        new.values.rate = Some("5r/s".parse().unwrap());
        new.values.pause = pause;
        new.until = clock::now() + Duration::from_secs(60);
        new.owner = Some("search".into());
        new
    }

    fn rate(gate: &OriginGate) -> Option<String> {
        gate.status(0).rate.map(|rate| rate.to_string())
    }

    #[test]
    fn the_next_process_follows_the_file() {
        let gate = gate();
        gate.set_override(Some(override_with(true)));
        let saved = gate.hand_over(clock::now(), &[]);
        let opens = saved.gate.opens;
        assert!(opens < Duration::from_secs(1), "{opens:?}");
        assert_eq!(rate(&gate).as_deref(), Some("20r/s"));
        assert_eq!(gate.override_in_force(), None);
    }

    #[test]
    fn the_file_counts_again_below_an_override_and_after_it() {
        let gate = gate();
        gate.set_override(Some(override_with(false)));
        for (file, max_in_flight) in [("rate = \"30r/s\"", None), ("max_in_flight = 3", Some(3))] {
            gate.reload(&origin(file), None, true);
            assert_eq!(rate(&gate).as_deref(), Some("5r/s"));
            assert_eq!(gate.status(0).max_in_flight, max_in_flight);
        }
        assert!(gate.set_override(None).is_some());
        assert_eq!(rate(&gate), None);
        gate.set_override(Some(override_with(false)));
        gate.reload(&origin(""), None, true);
        assert_eq!((rate(&gate), gate.override_in_force()), (None, None));
    }

    #[test]
    fn only_the_same_override_of_the_same_owner_is_renewed() {
        let (gate, first) = (gate(), override_with(true));
        assert!(!gate.renew_override(&first));
        gate.set_override(Some(first.clone()));
        let mut later = first.clone();
        later.until = first.until + Duration::from_secs(9);
        let changes: [fn(&mut GateOverride); 3] = [
            |it| it.owner = Some("another".into()),
            |it| it.values.rate = None,
            |it| it.values.pause = false,
        ];
        for change in changes {
            let mut other = later.clone();
            change(&mut other);
            assert!(!gate.renew_override(&other));
        }
        assert_eq!(gate.override_in_force(), Some(first.clone()));
        assert!(gate.renew_override(&later));
        assert_eq!(gate.override_in_force(), Some(later.clone()));
        assert_eq!(gate.lock().gate.opens(), later.until);
        let take_expired = |now: Moment| gate.end_override_if(|it| it.has_expired(now));
        assert!(take_expired(first.until).is_none() && take_expired(later.until).is_some());
        assert!(gate.lock().gate.opens() <= clock::now());
    }
}
