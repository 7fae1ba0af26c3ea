//! Invariant: all gateways share what back-off learns.
//!
//! A gate *backs off* if its origin is slow or fails: it cuts its rate to a share, which then
//! grows.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use super::{Checked, GateId};
use crate::simulation::scenario::Scenario;
use crate::simulation::world::HostId;

/// Time after which all gateways that reach the store know of a cut.
const KNOWN_AFTER: Duration = Duration::from_secs(1);
/// Delay with which a gateway that retries reaches the store after a fault.
const RECOVERED_AFTER: Duration = Duration::from_secs(2);
/// A gateway has called the store recently if one of its requests left between these times ago.
const CALLED: (Duration, Duration) = (Duration::from_millis(350), Duration::from_millis(650));
/// Growth of the rate per second, as a share of it.
const GROWTH: f64 = 0.05;
/// Allowed difference between gateways that grow alike: two ticks of a tenth of a second.
const APART: f64 = 0.02;

/// Invariant: a cut by one gateway's back-off applies to all, and their rates grow as one.
pub(super) struct Learning {
    scenario: Rc<Scenario>,
    gates: BTreeMap<GateId, Gate>,
    /// Number of checks that compared a gate with others that were cut.
    checks: u64,
}

/// State of a gate.
struct Gate {
    host: HostId,
    /// Time since which it is known.
    began: Duration,
    /// Effective shares of the rate in the last seconds.
    shares: VecDeque<(Duration, f64)>,
    /// Departures of requests.
    left: VecDeque<Duration>,
}

impl Learning {
    pub(super) fn new(scenario: &Rc<Scenario>) -> Self {
        Self {
            scenario: Rc::clone(scenario),
            gates: BTreeMap::new(),
            checks: 0,
        }
    }

    /// Records that a request leaves.
    pub(super) fn passes(&mut self, gate: GateId, now: Duration) {
        if let Some(gate) = self.gates.get_mut(&gate) {
            gate.left.push_back(now);
            if gate.left.len() > 1000 {
                gate.left.pop_front();
            }
        }
    }

    /// Records the effective share of the rate at a gate.
    pub(super) fn seen(
        &mut self,
        gate: GateId,
        host: HostId,
        share: f64,
        now: Duration,
    ) -> Checked {
        let new = || Gate {
            host,
            began: now,
            shares: VecDeque::new(),
            left: VecDeque::new(),
        };
        let known = self.gates.entry(gate).or_insert_with(new);
        if known.host != host {
            *known = new();
        }
        if let Some((seen, before)) = known.shares.back() {
            let passed = now.saturating_sub(*seen).as_secs_f64();
            let most = before + GROWTH * (passed + 0.1) + 1e-6;
            if share > most {
                return Err(format!(
                    "the rate of gateway {} grows from {before} to {share} in {passed} s",
                    gate.0
                ));
            }
        }
        known.shares.push_back((now, share));
        if known.shares.len() > 30 {
            known.shares.pop_front();
        }
        self.check_known(gate, share, now)
    }

    /// Checks that a gate is at most at the share that others had a second ago.
    fn check_known(&mut self, gate: GateId, share: f64, now: Duration) -> Checked {
        let Some(then) = now.checked_sub(KNOWN_AFTER) else {
            return Ok(());
        };
        let is_failing =
            self.scenario.faults.iter().any(|(begin, fault)| {
                *begin <= now && then < *begin + fault.lasts() + RECOVERED_AFTER
            });
        let known = &self.gates[&gate];
        let (last, first) = (now.saturating_sub(CALLED.0), now.saturating_sub(CALLED.1));
        let has_called = known.left.iter().any(|at| (first..last).contains(at));
        if is_failing || !has_called || known.began + 2 * KNOWN_AFTER > now {
            return Ok(());
        }
        let of_origin = self.gates.iter().filter(|(id, _)| id.1 == gate.1);
        let lowest = of_origin.filter_map(|(_, other)| {
            let before = other.shares.iter().rev().find(|(at, _)| *at <= then);
            before.map(|(_, share)| *share)
        });
        let lowest = lowest.fold(1.0, f64::min);
        self.checks += u64::from(lowest < 0.9);
        let most = lowest + GROWTH * 1.3 + APART;
        if share > most {
            return Err(format!(
                "gateway {} lets {share} of the rate through, where {lowest} was known a second ago",
                gate.0
            ));
        }
        Ok(())
    }

    /// Records that a gateway has died: the other gateways keep what it learned.
    pub(super) fn died(&mut self, gateway: usize) {
        self.gates.retain(|(number, _), _| *number != gateway);
    }

    /// Returns how often a gate was compared with others that were cut.
    pub(super) fn checks(&self) -> u64 {
        self.checks
    }
}
