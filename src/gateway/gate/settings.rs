//! Changes of a gate's limits, by a new file or by a temporary override.

use std::sync::{Arc, MutexGuard};

use limit::{GateLimits, Moment, Rate};

use super::backing_off::BackingOff;
use super::overrides::GateOverride;
use super::state::State;
use super::{OriginGate, Room};
use crate::time::clock;

impl State {
    /// Takes over new settings of the file.
    fn reload(&mut self, origin: &config::Origin, keeps_outage: bool, now: Moment) {
        if !keeps_outage {
            self.version += 1;
            self.gate.end_outage(now);
        }
        self.gate.set_classes(&origin.classes);
        self.file = origin.gate().unwrap_or(GateLimits::NONE);
        let limits = self.unlowered_limits();
        let known = self.backing_off.take();
        self.backing_off = origin.backoff.as_ref().map(|backoff| match known {
            Some(known) => known.reload(backoff, limits, now),
            None => BackingOff::new(backoff, limits, now),
        });
        self.apply_unlowered(now);
    }

    /// Returns the limits while the back-off lowers nothing: the file's values and the override.
    pub(super) fn unlowered_limits(&self) -> GateLimits {
        let overridden = self.overridden.as_ref();
        overridden.map_or(self.file, |it| it.values.applied_to(self.file))
    }

    /// Gives the back-off the limits that it lowers.
    fn set_limits_of_backoff(&mut self, now: Moment) {
        let limits = self.unlowered_limits();
        if let Some(backing_off) = &mut self.backing_off {
            backing_off.set_limits(limits, now);
        }
    }

    /// Gives the gate its [unlowered limits](State::unlowered_limits).
    ///
    /// The back-off lowers them when it is [applied](State::back_off) next.
    fn apply_unlowered(&mut self, now: Moment) {
        self.gate.set_limits(self.unlowered_limits(), now);
        self.end_pause(now);
    }

    /// Ends a pause, unless an override pauses the gate.
    pub(super) fn end_pause(&mut self, now: Moment) {
        self.gate.resume(now);
        if let Some(pause) = self.overridden.as_ref().filter(|it| it.values.pause) {
            self.gate.pause(pause.until);
        }
    }

    /// Sets an override, or ends it. Returns the previous override.
    fn set_override(&mut self, new: Option<GateOverride>, now: Moment) -> Option<GateOverride> {
        let before = std::mem::replace(&mut self.overridden, new.map(Box::new));
        self.set_limits_of_backoff(now);
        self.apply_unlowered(now);
        before.map(|it| *it)
    }

    /// Follows the effective rate of the gateways that share it. `own`: the rate in this file.
    pub(super) fn follow_rate(&mut self, origin: &str, rate: Rate, own: Rate, now: Moment) {
        if self.file.rate == Some(rate) {
            return;
        }
        let limits = GateLimits {
            rate: Some(rate),
            ..*self.gate.limits()
        };
        self.file.rate = Some(rate);
        self.set_limits_of_backoff(now);
        self.gate.set_limits(limits, now);
        if rate == own {
            tracing::info!(origin, in_force = %rate, "all gateways that share the origin have the same rate again");
        } else {
            tracing::warn!(origin, %own, in_force = %rate, "another gateway that shares the origin has another rate, from a newer file: that rate is in force here too");
        }
    }
}

impl OriginGate {
    /// Takes over new settings. Waiters get new times, and none is lost.
    ///
    /// If the origin no longer has a gate, all waiters depart. `keeps_outage`: if false, an outage
    /// ends, and requests sent under the old settings cannot begin another one. An override stays
    /// if the origin can still have it.
    pub(crate) fn reload(
        self: &Arc<Self>,
        origin: &config::Origin,
        room: Option<Room>,
        keeps_outage: bool,
    ) {
        let ended = self.change(self.lock(), |state, now| {
            let unfit = |it: &mut Box<GateOverride>| it.values.check_fits(origin).is_err();
            let ended = state.overridden.take_if(unfit);
            state.set_room(room, now);
            state.reload(origin, keeps_outage, now);
            self.publish_outage_end(state);
            ended
        });
        if ended.is_some() {
            let origin = &origin.name;
            tracing::warn!(
                origin,
                "override of the origin ended: its new settings have no gate, or share the overridden value with other gateways"
            );
        }
    }

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
        if !state.overridden.as_deref().is_some_and(ends) {
            return None;
        }
        self.change(state, |state, now| state.set_override(None, now))
    }

    /// Changes the limits under the lock, grants the slots that have come, and wakes the waiters.
    fn change<T>(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        change: impl FnOnce(&mut State, Moment) -> T,
    ) -> T {
        let now = clock::now();
        let mut released = state.release(&self.metrics, now);
        let result = change(&mut state, now);
        released.extend(state.release(&self.metrics, now));
        drop(state);
        self.grant(released);
        self.changes.send_replace(());
        result
    }

    /// Extends the override to the end of `new`, if both have the same owner and values.
    ///
    /// Returns whether the override was extended. An override without an owner is not.
    pub fn renew(&self, new: &GateOverride) -> bool {
        let mut state = self.lock();
        let is_same = |it: &GateOverride| {
            it.owner.is_some() && it.owner == new.owner && it.values == new.values
        };
        let Some(known) = state.overridden.as_mut().filter(|it| is_same(it)) else {
            return false;
        };
        known.until = new.until;
        if known.values.pause {
            state.gate.pause(new.until);
        }
        true
    }

    /// Returns the override in force; `None` if there is none.
    pub fn overridden(&self) -> Option<GateOverride> {
        self.lock().overridden.as_deref().cloned()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::gate::GateValues;

    fn origin(fields: &str) -> config::Origin {
        let mut settings = crate::test_settings::with_fields("", fields, "");
        settings.origins.remove(0)
    }

    fn gate(fields: &str) -> Arc<OriginGate> {
        OriginGate::of(&origin(fields), None, Arc::default()).unwrap()
    }

    fn overriding(rate: Option<&str>, pause: bool) -> GateOverride {
        let since = clock::now();
        GateOverride {
            values: GateValues {
                rate: rate.map(|rate| rate.parse().unwrap()),
                max_in_flight: None,
                pause,
            },
            since,
            until: since + Duration::from_secs(60),
            by: "ops".into(),
            owner: Some("search".into()),
        }
    }

    fn rate(gate: &OriginGate) -> String {
        let rate = gate.state(0).rate;
        rate.map_or("none".to_owned(), |rate| rate.to_string())
    }

    #[test]
    fn the_next_process_follows_the_file() {
        let gate = gate("rate = \"20r/s\"");
        gate.set_override(Some(overriding(Some("5r/s"), true)));
        let saved = gate.hand_over(clock::now(), &[]);
        let opens = saved.gate.opens;
        assert!(opens < Duration::from_secs(1), "{opens:?}");
        assert_eq!((rate(&gate), gate.overridden()), ("20r/s".to_owned(), None));
    }

    #[test]
    fn the_file_counts_again_below_an_override_and_after_it() {
        let gate = gate("rate = \"20r/s\"");
        gate.set_override(Some(overriding(Some("5r/s"), false)));
        gate.reload(&origin("rate = \"30r/s\""), None, true);
        assert_eq!(rate(&gate), "5r/s");
        gate.reload(&origin("max_in_flight = 3"), None, true);
        assert_eq!(
            (rate(&gate), gate.state(0).max_in_flight),
            ("5r/s".to_owned(), Some(3))
        );
        assert!(gate.set_override(None).is_some());
        assert_eq!(rate(&gate), "none");
        gate.set_override(Some(overriding(Some("5r/s"), false)));
        gate.reload(&origin(""), None, true);
        assert_eq!((rate(&gate), gate.overridden()), ("none".to_owned(), None));
    }

    #[test]
    fn only_the_same_override_of_the_same_owner_is_renewed() {
        let gate = gate("rate = \"20r/s\"");
        let first = overriding(Some("5r/s"), true);
        assert!(!gate.renew(&first));
        gate.set_override(Some(first.clone()));
        let later = GateOverride {
            until: first.until + Duration::from_secs(9),
            ..first.clone()
        };
        let other = |change: fn(&mut GateOverride)| {
            let mut other = later.clone();
            change(&mut other);
            other
        };
        assert!(!gate.renew(&other(|it| it.owner = Some("another".into()))));
        assert!(!gate.renew(&other(|it| it.values.rate = None)));
        assert!(!gate.renew(&other(|it| it.values.pause = false)));
        assert_eq!(gate.overridden(), Some(first.clone()));
        assert!(gate.renew(&later));
        assert_eq!(gate.overridden(), Some(later.clone()));
        assert_eq!(gate.lock().gate.opens(), later.until);
        let take_expired = |now: Moment| gate.end_override_if(|it| it.has_expired(now));
        assert_eq!(take_expired(first.until), None);
        assert!(take_expired(later.until).is_some());
        assert!(gate.lock().gate.opens() <= clock::now());
    }
}
