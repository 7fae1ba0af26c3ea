//! Invariant: gates that are cut off from the store go on alone, with a part of the rate.
//!
//! A gate bounds the pace of all requests to an origin. Gateways claim its *slots*, the instants at
//! which requests leave, from the store. The grid is the schedule of slots. A request that leaves
//! *alone* has none. A method with the name of an event, such as `died`, records the event.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use limit::Rate;

use super::{Checked, GateId, GateRequest};
use crate::gate::GateSharing;
use crate::simulation::scenario::Scenario;

/// Time after a change within which requests with earlier slots have left.
///
/// Slots are given out a millisecond ahead, and a change is seen up to three milliseconds later.
const SETTLED: Duration = Duration::from_millis(5);
/// Number of shares if a gateway has never received a reply.
const UNKNOWN: u32 = 10;

/// Invariant: a gateway continues alone only if something fails, with its share of the rate.
///
/// It divides the rate by the number of gateways that the store reported last. It returns to the
/// store when that many gateways are there, or after a second.
pub(super) struct Alone {
    scenario: Rc<Scenario>,
    gates: BTreeMap<GateId, Gate>,
}

/// State of a gate.
#[derive(Default)]
struct Gate {
    /// Whether it goes on without the store.
    is_alone: bool,
    /// Time of the last change of mode.
    changed: Option<Duration>,
    /// Number of gateways that the store reported last.
    received: Option<u32>,
    /// Number by which the gateway divides the rate while it is alone.
    parts: f64,
    /// Time of the first reply since the gateway is alone.
    back: Option<Duration>,
    /// Time and cost of the last request that left alone.
    last: Option<(Duration, u32)>,
}

/// Source of a gate's slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The store.
    Grid,
    /// The gateway itself, with a part of the rate.
    Alone,
    /// The source has just changed.
    Either,
}

impl Alone {
    pub(super) fn new(scenario: &Rc<Scenario>) -> Self {
        Self {
            scenario: Rc::clone(scenario),
            gates: BTreeMap::new(),
        }
    }

    /// Records the current source of a gate's slots. Returns the mode.
    pub(super) fn note(
        &mut self,
        gate: GateId,
        sharing: &GateSharing,
        now: Duration,
    ) -> Result<Mode, String> {
        let expected = self.scenario.origins[gate.1].gateways;
        let known = self.gates.entry(gate).or_default();
        if sharing.is_alone && self.scenario.is_calm() {
            return Err(format!("gateway {} goes on alone", gate.0));
        }
        if sharing.is_alone != known.is_alone {
            (known.is_alone, known.changed) = (sharing.is_alone, Some(now));
            let parts = known.received.or(expected).unwrap_or(UNKNOWN);
            if let (Some(back), false) = (known.back.take(), sharing.is_alone) {
                // The gateway may notice it one claim later.
                let waited = now.saturating_sub(back) + SETTLED + 2 * self.scenario.timeout;
                let is_long_back = waited >= Duration::from_secs(1);
                if !is_long_back
                    && known
                        .received
                        .is_none_or(|received| f64::from(received) < known.parts)
                {
                    return Err(format!(
                        "gateway {} takes slots before others can be back",
                        gate.0
                    ));
                }
            }
            if sharing.is_alone {
                known.parts = f64::from(parts);
                if (sharing.part * known.parts - 1.0).abs() > 1e-9 {
                    return Err(format!(
                        "gateway {} takes {} of the rate alone, where {parts} share it",
                        gate.0, sharing.part
                    ));
                }
            }
        }
        let is_new = |changed: Duration| now.saturating_sub(changed) <= SETTLED;
        Ok(match known.is_alone {
            _ if known.changed.is_some_and(is_new) => Mode::Either,
            true => Mode::Alone,
            false => Mode::Grid,
        })
    }

    pub(super) fn received(&mut self, gate: GateId, gateways: u32, now: Duration) {
        let gate = self.gates.entry(gate).or_default();
        gate.received = Some(gateways);
        if gate.is_alone {
            gate.back.get_or_insert(now);
        }
    }

    pub(super) fn died(&mut self, gateway: usize) {
        self.gates.retain(|(number, _), _| *number != gateway);
    }

    /// Checks a request that leaves alone: the previous one was its cost in intervals ago.
    pub(super) fn departs(&mut self, request: &GateRequest, now: Duration) -> Checked {
        let parts = self.gate(request).parts;
        self.check_gap(request, parts, now)?;
        self.gate(request).last = Some((now, request.cost.get()));
        Ok(())
    }

    /// Checks a request that leaves in a slot: at least an interval after those that left alone.
    pub(super) fn shares(&mut self, request: &GateRequest, now: Duration) -> Checked {
        self.check_gap(request, 1.0, now)
    }

    fn check_gap(&mut self, request: &GateRequest, parts: f64, now: Duration) -> Checked {
        let rates = self.scenario.origin_rates(request.origin);
        let interval = rates.map(Rate::interval).min().unwrap_or_default();
        // Whether responses report other costs.
        let is_settled = self.scenario.crowd.costly > 0 && self.scenario.moods[3] > 0;
        let Some((last, cost)) = self.gate(request).last else {
            return Ok(());
        };
        // A lower cost in a response moves the waiting requests up.
        let cost = if is_settled { 0 } else { cost };
        let apart = interval.as_secs_f64() * f64::from(cost) * parts;
        let gap = now.saturating_sub(last);
        // A clock may be slightly fast.
        if gap.as_secs_f64() * 1.0001 + 2e-6 < apart {
            return Err(format!(
                "request {} leaves {gap:?} behind one that left alone, not {apart}s",
                request.id
            ));
        }
        Ok(())
    }

    fn gate(&mut self, request: &GateRequest) -> &mut Gate {
        let gate = (request.gateway, request.origin);
        self.gates.entry(gate).or_default()
    }
}
