//! Limits in force at a gate, and their changes by a new file or by other gateways.
//!
//! They result from three steps: the limits of the file; an override in place of some of them
//! (`overrides`); and what the back-off lowers of the result (`backing_off`). *Unlowered* limits
//! are the result of the first two steps.

use std::sync::{Arc, MutexGuard};

use limit::{GateLimits, Moment, Rate};

use super::backing_off::BackingOff;
use super::overrides::GateOverride;
use super::state::State;
use super::{OriginGate, ServerLimit};
use crate::time::clock;

impl State {
    /// Takes over new settings of the file. `keeps_outage`: whether an outage goes on.
    fn reload(&mut self, origin: &config::Origin, keeps_outage: bool, now: Moment) {
        if !keeps_outage {
            // Requests that were sent under the old settings cannot begin an outage any more.
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
        let gate_override = self.gate_override.as_ref();
        gate_override.map_or(self.file, |it| it.values.applied_to(self.file))
    }

    /// Gives the back-off the limits that it lowers.
    pub(super) fn set_limits_of_backoff(&mut self, now: Moment) {
        let limits = self.unlowered_limits();
        if let Some(backing_off) = &mut self.backing_off {
            backing_off.set_limits(limits, now);
        }
    }

    /// Gives the gate its [unlowered limits](State::unlowered_limits).
    ///
    /// The back-off lowers them when it is [applied](State::back_off) next.
    pub(super) fn apply_unlowered(&mut self, now: Moment) {
        self.gate.set_limits(self.unlowered_limits(), now);
        self.end_pause(now);
    }

    /// Ends a pause, unless an override pauses the gate.
    pub(super) fn end_pause(&mut self, now: Moment) {
        self.gate.resume(now);
        let gate_override = self.gate_override.as_ref();
        if let Some(pause) = gate_override.filter(|it| it.values.pause) {
            self.gate.pause(pause.until);
        }
    }

    /// Follows the rate in force of an origin that gateways share. `own`: the rate in this file.
    ///
    /// `rate`: that of the gateway whose file changed last, as of the last reply of the store.
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
        server_limit: Option<ServerLimit>,
        keeps_outage: bool,
    ) {
        let ended = self.change(self.lock(), |state, now| {
            let unfit = |it: &mut Box<GateOverride>| it.values.check_fits(origin).is_err();
            let ended = state.gate_override.take_if(unfit);
            state.set_server_limit(server_limit, now);
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

    /// Changes the limits under the lock, grants the slots that have come, and wakes the waiters.
    ///
    /// Slots that came before the change are granted under the old limits.
    pub(super) fn change<T>(
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
}
