//! The replay of a trace under a file.

use config::Settings;
use gateway::replay::{GatedSimulator, Line, Outcome, ReplayAdmission, Simulator};

pub(super) enum Run<'a> {
    /// No request waits for another one to leave, so each outcome is known at once.
    Zones(Box<Simulator<'a>>),
    Gates(Box<GatedSimulator<'a>>),
}

impl<'a> Run<'a> {
    pub(super) fn new(settings: &'a Settings) -> Self {
        let mut limits = settings.routes.iter().flat_map(|route| &route.limits);
        if has_gate(settings) || limits.any(|limit| limit.limit.in_flight.is_some()) {
            Self::Gates(Box::new(GatedSimulator::new(settings)))
        } else {
            Self::Zones(Box::new(Simulator::new(settings)))
        }
    }

    /// The next request of the trace comes: line `number`.
    pub(super) fn judge(&mut self, number: u64, line: &Line) -> ReplayAdmission {
        match self {
            Self::Zones(simulator) => simulator
                .judge(line)
                .map_or(ReplayAdmission::Unrouted, ReplayAdmission::Known),
            Self::Gates(simulator) => simulator.judge(number, line),
        }
    }

    /// Everybody who waits leaves.
    pub(super) fn end(&mut self) {
        if let Self::Gates(simulator) = self {
            simulator.end();
        }
    }

    /// Calls `set` with each outcome that has become known, and the number of its line.
    pub(super) fn take_known(&mut self, set: impl FnMut((u64, Outcome))) {
        if let Self::Gates(simulator) = self {
            simulator.take_known().for_each(set);
        }
    }

    /// The variables of keys that the trace does not have.
    pub(super) fn untold(&self) -> Vec<&str> {
        match self {
            Self::Zones(simulator) => simulator.untold().collect(),
            Self::Gates(simulator) => simulator.untold().collect(),
        }
    }

    /// Requests that came to `max_in_flight` or `in_flight` without a time at the origin.
    pub(super) fn untimed(&self) -> u64 {
        match self {
            Self::Zones(_) => 0,
            Self::Gates(simulator) => simulator.untimed(),
        }
    }
}

/// Whether an origin has a gate.
pub(super) fn has_gate(settings: &Settings) -> bool {
    let mut origins = settings.origins.iter();
    origins.any(|origin| origin.gate_limits().is_some())
}
