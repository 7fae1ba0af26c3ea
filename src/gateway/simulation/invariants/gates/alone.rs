use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use limit::Rate;

use super::{Checked, GateId, GateRequest};
use crate::gate::GateSharing;
use crate::simulation::scenario::Scenario;

/// After this time nothing leaves any more whose turn came before a change.
///
/// Turns are given out a millisecond ahead, and a change is seen up to three milliseconds later.
const SETTLED: Duration = Duration::from_millis(5);
/// The part of a gateway that nobody has told anything: a tenth.
const UNKNOWN: u32 = 10;

/// A gateway goes on alone only if something fails, and then with its part of the rate: as many
/// share it as it was last told. It comes back when as many are there, or after a second.
pub(super) struct Alone {
    scenario: Rc<Scenario>,
    gates: BTreeMap<GateId, Gate>,
}

#[derive(Default)]
struct Gate {
    is_alone: bool,
    /// When that changed.
    changed: Option<Duration>,
    /// The gateways that it was last told of.
    told: Option<u32>,
    /// Among how many it divides the rate while it is alone.
    parts: f64,
    /// When it was told something for the first time while it was alone.
    back: Option<Duration>,
    /// When a request last left alone, and what it cost.
    last: Option<(Duration, u32)>,
}

/// How a gate gets its slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Grid,
    Alone,
    /// It has just changed.
    Either,
}

impl Alone {
    pub(super) fn new(scenario: &Rc<Scenario>) -> Self {
        Self {
            scenario: Rc::clone(scenario),
            gates: BTreeMap::new(),
        }
    }

    /// Somebody looks how a gate gets its slots. Returns how.
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
            let parts = known.told.or(expected).unwrap_or(UNKNOWN);
            if let (Some(back), false) = (known.back.take(), sharing.is_alone) {
                // It found out a claim before.
                let waited = now.saturating_sub(back) + SETTLED + 2 * self.scenario.timeout;
                let is_long_back = waited >= Duration::from_secs(1);
                if !is_long_back && known.told.is_none_or(|told| f64::from(told) < known.parts) {
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

    pub(super) fn told(&mut self, gate: GateId, gateways: u32, now: Duration) {
        let gate = self.gates.entry(gate).or_default();
        gate.told = Some(gateways);
        if gate.is_alone {
            gate.back.get_or_insert(now);
        }
    }

    pub(super) fn died(&mut self, gateway: usize) {
        self.gates.retain(|(of, _), _| *of != gateway);
    }

    /// A request leaves alone: the one before was its cost of the gateway's intervals ago.
    pub(super) fn departs(&mut self, request: &GateRequest, now: Duration) -> Checked {
        let parts = self.gate(request).parts;
        self.check_gap(request, parts, now)?;
        self.gate(request).last = Some((now, request.cost.get()));
        Ok(())
    }

    /// A request leaves in a slot: at least one interval behind those that left alone.
    pub(super) fn shares(&mut self, request: &GateRequest, now: Duration) -> Checked {
        self.check_gap(request, 1.0, now)
    }

    fn check_gap(&mut self, request: &GateRequest, parts: f64, now: Duration) -> Checked {
        let rates = self.scenario.origin_rates(request.origin);
        let interval = rates.map(Rate::interval).min().unwrap_or_default();
        let is_settled = self.scenario.crowd.costly > 0 && self.scenario.moods[3] > 0;
        let Some((last, cost)) = self.gate(request).last else {
            return Ok(());
        };
        // What an answer costs less moves up those who wait.
        let cost = if is_settled { 0 } else { cost };
        let apart = interval.as_secs_f64() * f64::from(cost) * parts;
        let gap = now.saturating_sub(last);
        // A clock may be a little fast.
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
