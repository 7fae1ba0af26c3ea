//! One experiment: its logic, its owner, and its override of the gate.
//!
//! An experiment raises the level of an origin's gate, its rate or its number of permits, step by
//! step, until the objective is no longer kept. It sets each level by an override of the gate,
//! which expires unless it is renewed.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use limit::Moment;
use limit::find::{
    AbortReason, AnswerEvent, Experiment, FindSettings, Levels, Objective, Observed, StepRecord,
};

use crate::admin::Admin;
use crate::gate::{GateOverride, GateValues, OriginGate};
use crate::origin::{Availability, Origin};
use crate::status::find::ConfiguredLimits;

/// Owner of the overrides of experiments. No other owner can have this name.
pub(crate) const OWNER: &str = "drip find";
/// Time limit for the next renewal.
///
/// An experiment ends if its owner, the program that started it, does not renew it for this
/// duration. The override expires if the experiment does not renew it for this duration.
pub(super) const RENEWAL_LIMIT: Duration = Duration::from_secs(15);

/// An experiment that runs or has ended.
pub(in crate::admin) struct Running {
    /// Id of the experiment.
    pub(in crate::admin) id: u64,
    pub(in crate::admin) origin: String,
    pub(in crate::admin) objective: Objective,
    /// Author: the name of a token, or an address.
    pub(in crate::admin) by: Arc<str>,
    /// Start of the experiment.
    pub(in crate::admin) began: Moment,
    /// Configured values of the origin. A change of them ends the experiment.
    pub(in crate::admin) file: ConfiguredLimits,
    /// Logic of the experiment.
    pub(in crate::admin) experiment: Experiment,
    /// Gate of the origin.
    gate: Arc<OriginGate>,
    /// Instant of the owner's last renewal.
    renewed: Moment,
}

impl Running {
    /// Sets the first level, and begins to observe the gate.
    pub(super) fn begin(
        id: u64,
        (settings, by): (FindSettings, Arc<str>),
        (origin, gate): (&Origin, &Arc<OriginGate>),
        admin: &Admin,
        now: Moment,
    ) -> Self {
        gate.begin_observing();
        let first = observe(origin, gate, admin, now).map(|(_, at_gate)| at_gate);
        let running = Self {
            id,
            origin: origin.settings().name.clone(),
            objective: settings.objective.clone(),
            by,
            began: now,
            file: ConfiguredLimits::of(origin.settings()),
            experiment: Experiment::new(settings, first.unwrap_or_default(), now),
            gate: Arc::clone(gate),
            renewed: now,
        };
        running.keep_override(now);
        running
    }

    /// Renews the experiment for its owner.
    pub(in crate::admin) fn renew(&mut self, now: Moment) {
        self.renewed = now;
    }

    /// Advances the experiment to `now`. Returns the step that ended, if one did.
    pub(super) fn tick(&mut self, admin: &Admin, now: Moment) -> Option<StepRecord> {
        if self.experiment.is_over() {
            // The experiment was stopped. Another experiment may hold the override by now.
            return None;
        }
        let gateway = admin.gateway();
        let mut origins = gateway.iter().flat_map(|gateway| gateway.origins());
        let origin = origins.find(|origin| origin.settings().name == self.origin);
        // After a reload, the origin may be gone, or have another gate or none.
        let is_own_gate = |gate: &Arc<OriginGate>| Arc::ptr_eq(gate, &self.gate);
        let origin = origin.filter(|origin| origin.gate().is_some_and(is_own_gate));
        let Some(origin) = origin else {
            return self.end(AbortReason::FileChanged, now);
        };
        let (events, at_gate) = observe(origin, &self.gate, admin, now).unzip();
        for (sent, event) in events.into_iter().flatten() {
            self.experiment.record(sent, event);
        }
        let is_stopping = || gateway.as_ref().is_some_and(|it| it.is_stopping());
        let reason = match self.gate.override_in_force() {
            None => Some(AbortReason::Undone),
            Some(set) if !is_ours(&set) => Some(AbortReason::Overridden),
            Some(_) if now.since(self.renewed) >= RENEWAL_LIMIT => Some(AbortReason::OwnerLost),
            Some(_) => is_stopping().then_some(AbortReason::Stopped),
        };
        if let Some(reason) = reason {
            return self.end(reason, now);
        }
        let step = at_gate.and_then(|at_gate| self.experiment.tick(&at_gate, now));
        if self.experiment.is_over() {
            self.restore();
        } else {
            self.keep_override(now);
        }
        step
    }

    /// Ends the experiment now. Returns the step that was under way.
    pub(super) fn end(&mut self, reason: AbortReason, now: Moment) -> Option<StepRecord> {
        let step = self.experiment.abort(reason, now);
        self.restore();
        step
    }

    /// Keeps the override at the level of the experiment.
    fn keep_override(&self, now: Moment) {
        let levels = self.experiment.levels();
        let permits = levels.permits.and_then(|it| usize::try_from(it).ok());
        let requested = GateOverride {
            values: GateValues {
                rate: levels.rate,
                max_in_flight: permits.and_then(NonZeroUsize::new),
                pause: false,
            },
            since: now,
            until: now + RENEWAL_LIMIT,
            by: Arc::clone(&self.by),
            owner: Some(OWNER.into()),
        };
        if !self.gate.renew_override(&requested) {
            self.gate.set_override(Some(requested));
        }
    }

    /// Ends the override, unless another author has replaced it.
    fn restore(&self) {
        self.gate.end_observing();
        self.gate.end_override_if(is_ours);
    }
}

/// Returns whether an override is one of an experiment.
fn is_ours(overridden: &GateOverride) -> bool {
    overridden.owner.as_deref() == Some(OWNER)
}

/// Returns the outcome of each request since the last call, and the present state of the gate.
///
/// `None`: the gate is not observed.
fn observe(
    origin: &Origin,
    gate: &OriginGate,
    admin: &Admin,
    now: Moment,
) -> Option<(Vec<(Moment, AnswerEvent)>, Observed)> {
    let seen = gate.take_observation()?;
    let at_gate = Observed {
        departed: seen.departures,
        has_waited: seen.has_waited,
        waited: seen.waited,
        limits: Levels {
            rate: seen.file.rate,
            permits: seen.file.max_in_flight.map(to_u32),
        },
        wait: seen.wait,
        in_flight: to_u32(seen.most_in_flight),
        file: admin.file_state.borrow().changes,
        servers: hash_servers(origin, now),
        is_backed_off: seen.is_backed_off,
    };
    Some((seen.events, at_gate))
}

fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Returns a number that changes when a server is added, removed, or changes its health.
fn hash_servers(origin: &Origin, now: Moment) -> u64 {
    let mut hasher = DefaultHasher::new();
    for server in origin.servers() {
        server.url().to_string().hash(&mut hasher);
        matches!(server.availability(now), Availability::Out(..)).hash(&mut hasher);
    }
    hasher.finish()
}
