//! Invariants of gates that gateways share.
//!
//! A gate bounds the pace of all requests to an origin. The store has one schedule of slots for it,
//! the *grid*. Gateways *claim* slots from the grid, and go on *alone* with a part of the rate if
//! they cannot reach the store. A method with the name of an event, such as `arrives`, records the
//! event.

mod alone;
mod answers;
mod fairness;
mod grid;
mod learning;
mod order;
mod reported_keys;
mod slots;
mod turns;
mod work;

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use limit::Cost;

use super::{Checked, Invariants};
use crate::gate::GateRejection;
use crate::simulation::claim_call::ClaimCall;
use crate::simulation::crowd::Passage;
use crate::simulation::gateway::Gateway;
use crate::simulation::scenario::Scenario;
use crate::simulation::world::HostId;
use alone::Alone;
use answers::Answers;
use fairness::Fairness;
use grid::Grid;
use learning::Learning;
use order::Order;
pub(in crate::simulation) use slots::ClaimId;
use slots::{Departed, Slots};
use turns::Turns;
use work::Work;

/// A request for an origin with a shared gate.
#[derive(Clone, Debug)]
pub(in crate::simulation) struct GateRequest {
    /// Number of the request, in the order of arrival.
    pub(super) id: u64,
    pub(super) gateway: usize,
    /// Host of the gateway. A restarted gateway has another host.
    pub(super) host: HostId,
    pub(super) origin: usize,
    /// Index of the key.
    pub(super) key: usize,
    /// Index of the class.
    pub(super) class: usize,
    pub(super) cost: Cost,
    /// Time of arrival.
    pub(super) since: Duration,
}

/// A gate of a gateway: indices of the gateway and of the origin.
type GateId = (usize, usize);

/// All invariants of shared gates.
pub(super) struct Gates {
    /// Number of requests that have arrived.
    pub(super) count: u64,
    pub(super) answers: Answers,
    order: Order,
    pub(super) grid: Grid,
    pub(super) slots: Slots,
    alone: Alone,
    pub(super) turns: Turns,
    work: Work,
    fairness: Fairness,
    learning: Learning,
    /// Hosts of gateways that have died.
    dead: BTreeSet<HostId>,
}

impl Gates {
    pub(super) fn new(scenario: &Rc<Scenario>) -> Self {
        Self {
            count: 0,
            answers: Answers::new(scenario),
            order: Order::new(scenario),
            grid: Grid::new(scenario),
            slots: Slots::new(scenario),
            alone: Alone::new(scenario),
            turns: Turns::default(),
            work: Work::new(scenario),
            fairness: Fairness::new(scenario),
            learning: Learning::new(scenario),
            dead: BTreeSet::new(),
        }
    }

    /// Records that a request waits no longer. `passes`: it goes on to the origin.
    fn end_wait(&mut self, request: &GateRequest, passes: bool, now: Duration) -> Checked {
        self.fairness.ends(request, passes, now)?;
        let held = self.slots.held((request.gateway, request.origin), now);
        self.work.ends(request, held, passes, now)?;
        self.slots.ends(request, now)
    }

    /// Records that a gateway has died: its requests get no response, and its slots expire.
    pub(super) fn died(&mut self, gateway: usize, host: HostId) {
        self.dead.insert(host);
        self.answers.died(host);
        self.order.died(host);
        self.slots.died(gateway);
        self.alone.died(gateway);
        self.learning.died(gateway);
    }

    /// Returns the counts, as in [`Outcome`](crate::simulation::run::Outcome).
    pub(super) fn counts(&self) -> [u64; 4] {
        let (in_slots, alone) = self.slots.counts();
        let (fairness, learning) = (self.fairness.checks(), self.learning.checks());
        [in_slots, alone, fairness, learning]
    }
}

impl Invariants {
    /// Records that a request arrives at a shared gate.
    pub(in crate::simulation) fn arrives(
        &self,
        gateway: &Gateway,
        passage: &Passage,
    ) -> GateRequest {
        let (now, gates) = (self.world.now(), &mut *self.gates.borrow_mut());
        gates.count += 1;
        let request = GateRequest {
            id: gates.count,
            gateway: gateway.number,
            host: gateway.host,
            origin: passage.origin,
            key: passage.key,
            class: passage.class,
            cost: passage.cost,
            since: now,
        };
        self.note_at_gate(&request, format_args!("comes: {passage:?}"));
        gates.answers.arrives(&request);
        gates.order.arrives(&request);
        gates.fairness.arrives(&request);
        gates.slots.arrives(&request);
        let held = gates.slots.held((request.gateway, request.origin), now);
        gates.work.arrives(&request, held);
        request
    }

    /// Records that a request goes on to the origin.
    pub(in crate::simulation) fn passes(&self, request: &GateRequest, gateway: &Gateway) {
        let Some(sharing) = gateway.sharing(request.origin) else {
            return;
        };
        self.note_at_gate(request, format_args!("goes on: {sharing:?}"));
        self.check_at_gates(|gates, now| {
            let gate = (request.gateway, request.origin);
            gates.learning.passes(gate, now);
            gates.answers.answered(request, now)?;
            gates.order.passes(request, now)?;
            let mode = gates.alone.note(gate, &sharing, now)?;
            match gates.slots.departs(request, mode, now)? {
                Departed::InSlot => gates.alone.shares(request, now)?,
                Departed::Alone => gates.alone.departs(request, now)?,
            }
            gates.end_wait(request, true, now)
        });
    }

    /// Records that the gate rejected a request, or that it waited too long.
    pub(in crate::simulation) fn rejected_at_gate(
        &self,
        request: &GateRequest,
        why: &GateRejection,
    ) {
        self.note_at_gate(request, format_args!("is rejected: {:?}", why.reason));
        self.check_at_gates(|gates, now| {
            gates.order.left(request);
            gates.end_wait(request, false, now)?;
            gates.answers.answered(request, now)
        });
    }

    /// Records that a client left while it waited at a gate.
    pub(in crate::simulation) fn leaves_gate(&self, request: &GateRequest) {
        self.note_at_gate(request, format_args!("leaves"));
        self.check_at_gates(|gates, now| {
            gates.order.left(request);
            gates.answers.left(request);
            gates.end_wait(request, false, now)
        });
    }

    /// Records how the gates of a gateway get their slots.
    pub(in crate::simulation) fn check_gates(&self, gateway: &Gateway) {
        let sharing = (0..).map_while(|origin| gateway.sharing(origin));
        for (origin, sharing) in sharing.enumerate() {
            let gate = (gateway.number, origin);
            self.check_at_gates(|gates, now| {
                if gates.dead.contains(&gateway.host) {
                    return Ok(());
                }
                gates.alone.note(gate, &sharing, now)?;
                match gates.slots.unanswered(gate, now) {
                    Some(span) if !sharing.is_alone => Err(format!(
                        "gateway {} waits for the store since {span:?}, and does not go on alone",
                        gate.0
                    )),
                    _ => Ok(()),
                }
            });
        }
    }

    /// Records the effective share of the rate at the gates of a gateway.
    pub(in crate::simulation) fn check_backoffs(&self, gateway: &Gateway, is_over: bool) {
        let shares = 0..gateway.scenario.origins.len();
        let shares = shares.map_while(|origin| gateway.passed_share(origin));
        for (origin, share) in shares.enumerate() {
            self.check_at_gates(|gates, now| {
                if gates.dead.contains(&gateway.host) {
                    return Ok(());
                }
                let gate = (gateway.number, origin);
                gates.learning.seen(gate, gateway.host, share, now)
            });
            if is_over && share < 0.999 {
                self.remains(&format!("a cut at gateway {}", gateway.number));
            }
        }
    }

    /// Records that a gateway has received the reply to a claim, sent at `sent`.
    pub(in crate::simulation) fn received(&self, claim: ClaimId, sent: Duration) {
        self.world.note(format_args!("{claim:?} is answered"));
        self.check_at_gates(|gates, now| {
            if let Some((gate, gateways)) = gates.slots.received(claim, sent, now) {
                gates.alone.received(gate, gateways, now);
                gates.work.note_held(gate, gates.slots.held(gate, now), now);
            }
            Ok(())
        });
    }

    /// Records that a gateway has claimed slots.
    pub(super) fn claimed(&self, gateway: usize, call: &ClaimCall) -> Option<ClaimId> {
        // Names of processes and hashes of keys differ in each run, so the trace omits them.
        self.world.note(format_args!(
            "store: gateway {gateway} claims {} for {:?}: is 1 of {}, has {} of {}: {:?}",
            call.requested, call.classes, call.gateways, call.part, call.in_force, call.slots
        ));
        let mut claim = None;
        self.check_at_gates(|gates, now| {
            gates.grid.claimed(gateway, call)?;
            gates.turns.claimed(call)?;
            gates.work.claimed(call, now)?;
            claim = Some(gates.slots.claimed(gateway, call, now));
            Ok(())
        });
        claim
    }

    /// Checks conditions of gates. Fails the simulation if one does not hold.
    fn check_at_gates(&self, check: impl FnOnce(&mut Gates, Duration) -> Checked) {
        let checked = check(&mut self.gates.borrow_mut(), self.world.now());
        self.check(checked);
    }

    /// Adds a step of a request to the trace.
    fn note_at_gate(&self, request: &GateRequest, what: std::fmt::Arguments<'_>) {
        let (id, gateway, origin) = (request.id, request.gateway, request.origin);
        let (key, class) = (request.key, request.class);
        self.world.note(format_args!(
            "gateway {gateway}: request {id} of origin{origin}:{class}:{key} {what}"
        ));
    }
}

/// Converts a time since the start of the simulation, or a span, to nanoseconds.
fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}
