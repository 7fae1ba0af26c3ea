//! What must hold at gates that gateways share.

mod alone;
mod answers;
mod fairness;
mod grid;
mod learning;
mod order;
mod slots;
mod told_keys;
mod turns;
mod work;

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use limit::Cost;

use super::Checked;
use crate::gate::GateSharing;
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
    /// Counts up, in the order in which requests come.
    pub(super) id: u64,
    pub(super) gateway: usize,
    /// Tells a gateway from the one before its restart.
    pub(super) host: HostId,
    pub(super) origin: usize,
    /// Indices of its key and its class.
    pub(super) key: usize,
    pub(super) class: usize,
    pub(super) cost: Cost,
    pub(super) since: Duration,
}

/// A gate of a gateway: the numbers of the gateway and of the origin.
type GateId = (usize, usize);

/// All invariants of shared gates.
pub(super) struct Gates {
    next: u64,
    answers: Answers,
    order: Order,
    grid: Grid,
    slots: Slots,
    alone: Alone,
    turns: Turns,
    work: Work,
    fairness: Fairness,
    learning: Learning,
    dead: BTreeSet<HostId>,
}

impl Gates {
    pub(super) fn new(scenario: &Rc<Scenario>) -> Self {
        Self {
            next: 0,
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

    pub(super) fn comes(
        &mut self,
        gateway: &Gateway,
        passage: &Passage,
        now: Duration,
    ) -> GateRequest {
        self.next += 1;
        let request = GateRequest {
            id: self.next,
            gateway: gateway.number,
            host: gateway.host,
            origin: passage.origin,
            key: passage.key,
            class: passage.class,
            cost: passage.cost,
            since: now,
        };
        self.answers.comes(&request);
        self.order.comes(&request);
        self.fairness.comes(&request);
        self.slots.comes(&request);
        let held = self.slots.held((request.gateway, request.origin), now);
        self.work.comes(&request, held);
        request
    }

    /// It goes on to the origin. `sharing`: how its gate gets its slots now.
    pub(super) fn passes(
        &mut self,
        request: &GateRequest,
        sharing: &GateSharing,
        now: Duration,
    ) -> Checked {
        let gate = (request.gateway, request.origin);
        self.learning.passes(gate, now);
        self.answers.answered(request, now)?;
        self.order.passes(request, now)?;
        let mode = self.alone.note(gate, sharing, now)?;
        match self.slots.departs(request, mode, now)? {
            Departed::InSlot => self.alone.shares(request, now)?,
            Departed::Alone => self.alone.departs(request, now)?,
        }
        self.waits_no_more(request, true, now)
    }

    fn waits_no_more(&mut self, request: &GateRequest, passes: bool, now: Duration) -> Checked {
        self.fairness.ends(request, passes, now)?;
        let held = self.slots.held((request.gateway, request.origin), now);
        self.work.ends(request, held, passes, now)?;
        self.slots.ends(request, now)
    }

    /// It was rejected, or has waited too long.
    pub(super) fn turned_away(&mut self, request: &GateRequest, now: Duration) -> Checked {
        self.order.left(request);
        self.waits_no_more(request, false, now)?;
        self.answers.answered(request, now)
    }

    /// Its client left while it waited.
    pub(super) fn goes(&mut self, request: &GateRequest, now: Duration) -> Checked {
        self.order.left(request);
        self.answers.left(request);
        self.waits_no_more(request, false, now)
    }

    /// How a gate gets its slots, as seen by someone who looks now and then.
    pub(super) fn seen(
        &mut self,
        gate: GateId,
        host: HostId,
        sharing: &GateSharing,
        now: Duration,
    ) -> Checked {
        if self.dead.contains(&host) {
            return Ok(());
        }
        self.alone.note(gate, sharing, now)?;
        match self.slots.unanswered(gate, now) {
            Some(span) if !sharing.is_alone => Err(format!(
                "gateway {} waits for the store since {span:?}, and does not go on alone",
                gate.0
            )),
            _ => Ok(()),
        }
    }

    /// Which part of the rate is in force at a gate, as seen by someone who looks now and then.
    pub(super) fn lets_through(
        &mut self,
        gate: GateId,
        host: HostId,
        share: f64,
        now: Duration,
    ) -> Checked {
        if self.dead.contains(&host) {
            return Ok(());
        }
        self.learning.seen(gate, host, share, now)
    }

    /// A gateway has claimed slots.
    pub(super) fn claimed(
        &mut self,
        gateway: usize,
        call: &ClaimCall,
        now: Duration,
    ) -> Result<ClaimId, String> {
        self.grid.claimed(gateway, call)?;
        self.turns.claimed(call)?;
        self.work.claimed(call, now)?;
        Ok(self.slots.claimed(gateway, call, now))
    }

    /// The answer has arrived. The claim was sent at `sent`.
    pub(super) fn told(&mut self, claim: ClaimId, sent: Duration, now: Duration) {
        if let Some((gate, gateways)) = self.slots.told(claim, sent, now) {
            self.alone.told(gate, gateways, now);
            self.work.look(gate, self.slots.held(gate, now), now);
        }
    }

    pub(super) fn store_forgot(&mut self) {
        self.grid.store_forgot();
        self.turns.forget();
    }

    /// The store's clock has jumped.
    pub(super) fn jumped(&mut self, micros: i64, now: Duration) {
        self.answers.jumped(micros);
        self.slots.jumped(now);
        self.turns.forget();
    }

    /// A gateway has died: its requests get no answer, and its slots lapse.
    pub(super) fn died(&mut self, gateway: usize, host: HostId) {
        self.dead.insert(host);
        self.answers.died(host);
        self.order.died(host);
        self.slots.died(gateway);
        self.alone.died(gateway);
        self.learning.died(gateway);
    }

    /// All faults are over, and no more requests come.
    pub(super) fn healed(&mut self, now: Duration) {
        self.answers.healed(now);
    }

    pub(super) fn waiting(&self) -> usize {
        self.answers.waiting()
    }

    pub(super) fn check_waiting(&self, now: Duration) -> Checked {
        self.answers.check(now)
    }

    /// How many requests have come.
    pub(super) fn count(&self) -> u64 {
        self.next
    }

    /// How many went on in slots of the grid, and how many alone; and how often fairness could be
    /// checked.
    pub(super) fn counts(&self) -> [u64; 4] {
        let (in_slots, alone) = self.slots.counts();
        [
            in_slots,
            alone,
            self.fairness.checks(),
            self.learning.checks(),
        ]
    }
}

/// Nanoseconds since the simulation began, or of a span.
fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}
