//! One file, and the results of replaying the trace under it.

use config::Settings;
use gateway::replay::{GatedSimulator, Line, Outcome, ReplayAdmission, Simulator};

use super::compare::Total;
use super::flow::Flow;

/// One file and the results of replaying the trace under it.
pub(super) struct Run<'a> {
    simulator: Engine<'a>,
    has_gate: bool,
    pub(super) total: Total,
    pub(super) flow: Flow,
}

enum Engine<'a> {
    /// No request waits for another one to leave, so each outcome is known at once.
    Zones(Box<Simulator<'a>>),
    Gates(Box<GatedSimulator<'a>>),
}

impl<'a> Run<'a> {
    pub(super) fn new(settings: &'a Settings) -> Self {
        let has_gate = settings
            .origins
            .iter()
            .any(|origin| origin.gate_limits().is_some());
        let mut limits = settings.routes.iter().flat_map(|route| &route.limits);
        let has_places = limits.any(|limit| limit.limit.in_flight.is_some());
        let simulator = if has_gate || has_places {
            Engine::Gates(Box::new(GatedSimulator::new(settings)))
        } else {
            Engine::Zones(Box::new(Simulator::new(settings)))
        };
        Self {
            simulator,
            has_gate,
            total: Total::default(),
            flow: Flow::new(),
        }
    }

    /// Whether an origin has a gate.
    pub(super) fn has_gate(&self) -> bool {
        self.has_gate
    }

    /// Whether the outcome of a request may be known only later.
    pub(super) fn is_eventual(&self) -> bool {
        matches!(self.simulator, Engine::Gates(_))
    }

    /// The next request of the trace comes: line `number`.
    pub(super) fn judge(&mut self, number: u64, line: &Line) -> ReplayAdmission {
        match &mut self.simulator {
            Engine::Zones(simulator) => simulator
                .judge(line)
                .map_or(ReplayAdmission::Unrouted, ReplayAdmission::Known),
            Engine::Gates(simulator) => simulator.judge(number, line),
        }
    }

    /// Everybody who waits leaves.
    pub(super) fn end(&mut self) {
        if let Engine::Gates(simulator) = &mut self.simulator {
            simulator.end();
        }
    }

    /// Calls `told` with each outcome that has become known, and the number of its line.
    pub(super) fn take_known(&mut self, told: impl FnMut((u64, Outcome))) {
        if let Engine::Gates(simulator) = &mut self.simulator {
            simulator.take_known().for_each(told);
        }
    }

    /// Counts an outcome. Outcomes come in the order of their lines.
    pub(super) fn count(&mut self, outcome: Option<&Outcome>, is_drawn: bool) {
        self.total.add(outcome);
        if let Some(outcome) = outcome.filter(|_| is_drawn) {
            self.flow.add(outcome);
        }
    }

    pub(super) fn untold(&self) -> Vec<&str> {
        match &self.simulator {
            Engine::Zones(simulator) => simulator.untold().collect(),
            Engine::Gates(simulator) => simulator.untold().collect(),
        }
    }

    /// Requests that came to `max_in_flight` or `in_flight` without a time at the origin.
    pub(super) fn untimed(&self) -> u64 {
        match &self.simulator {
            Engine::Zones(_) => 0,
            Engine::Gates(simulator) => simulator.untimed(),
        }
    }
}
