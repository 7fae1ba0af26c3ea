//! Invariants: conditions that must hold after each step of the simulation, for any seed.
//!
//! A method with the name of an event, such as `departed`, records the event. Each file has one
//! condition on zones; `gates` has those on gates.

mod answers;
mod books;
mod fallback;
mod gates;
mod order;
mod pace;
mod schedule_slots;
mod sharing;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use limit::{Cost, Limit};

use super::claim_call::ClaimCall;
use super::client::Visit;
use super::gateway::Gateway;
use super::redis::Reply;
use super::scenario::Scenario;
use super::script_call::ScriptCall;
use super::world::{HostId, World};
use crate::zone::{Charge, Grant, Rejection};
use answers::Answers;
use books::Books;
use fallback::Fallback;
pub(super) use gates::ClaimId;
use gates::Gates;
use order::Order;
use pace::Pace;
use schedule_slots::ScheduleSlots;
use sharing::Sharing;

/// A request of a client.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// Number of the request, in the order of joining.
    id: u64,
    gateway: usize,
    /// Host of the gateway. A restarted gateway has another host.
    host: HostId,
    zone: usize,
    key: &'static str,
    limit: Limit,
    /// Time of joining.
    since: Duration,
}

/// All invariants.
pub(super) struct Invariants {
    world: Rc<World>,
    /// Number of the next request of a zone.
    next: Cell<u64>,
    /// Number of requests that a lease decided.
    leased: Cell<u64>,
    answers: RefCell<Answers>,
    fallback: Fallback,
    order: RefCell<Order>,
    pace: RefCell<Pace>,
    schedule_slots: RefCell<ScheduleSlots>,
    books: RefCell<Books>,
    sharing: RefCell<Sharing>,
    gates: RefCell<Gates>,
    scenario_has_zones: bool,
}

/// Result of a check; the error describes the violation.
type Checked = Result<(), String>;

impl Invariants {
    pub(super) fn new(world: &Rc<World>, scenario: &Rc<Scenario>) -> Rc<Self> {
        Rc::new(Self {
            world: Rc::clone(world),
            next: Cell::default(),
            leased: Cell::default(),
            answers: RefCell::new(Answers::new(scenario)),
            fallback: Fallback::new(scenario),
            order: RefCell::new(Order::new(scenario)),
            pace: RefCell::new(Pace::new(scenario)),
            schedule_slots: RefCell::new(ScheduleSlots::new(scenario)),
            books: RefCell::new(Books::new(scenario)),
            sharing: RefCell::new(Sharing::new(scenario)),
            gates: RefCell::new(Gates::new(scenario)),
            scenario_has_zones: !scenario.zones.is_empty(),
        })
    }

    /// Records that a client joins at a gateway.
    pub(super) fn joined(&self, gateway: &Gateway, visit: &Visit) -> Request {
        let id = self.next.get();
        self.next.set(id + 1);
        let request = Request {
            id,
            gateway: gateway.number,
            host: gateway.host,
            zone: visit.zone,
            key: visit.key,
            limit: visit.limit,
            since: self.world.now(),
        };
        self.note(&request, format_args!("joins: {:?}", visit.limit));
        self.answers.borrow_mut().joined(&request);
        request
    }

    /// Records that a request departs in its slot.
    pub(super) fn departed(&self, request: &Request, grant: &Grant) {
        let now = self.world.now();
        self.note(request, format_args!("departs: {:?}", grant.charge));
        if request.since == now && matches!(grant.charge, Charge::Store(_)) {
            self.leased.set(self.leased.get() + 1);
        }
        self.check(self.answers.borrow_mut().answered(request, now));
        self.check(self.fallback.departed(request, grant.charge));
        self.check(self.order.borrow_mut().departed(request, grant));
        self.check(self.schedule_slots.borrow_mut().departed(request, grant));
        self.books.borrow_mut().departed(request);
        let sharing = &mut *self.sharing.borrow_mut();
        self.check(sharing.departed(request, grant.charge, now));
        self.check(self.pace.borrow_mut().departed(request, grant.charge, now));
    }

    /// Records that a request was rejected.
    pub(super) fn rejected(&self, request: &Request, rejection: &Rejection) {
        self.note(request, format_args!("is rejected: {:?}", rejection.reason));
        let now = self.world.now();
        self.check(self.answers.borrow_mut().answered(request, now));
        self.check(self.fallback.rejected(request, rejection.reason));
    }

    /// Records that a client left while it waited.
    pub(super) fn left(&self, request: &Request) {
        self.note(request, format_args!("leaves"));
        self.answers.borrow_mut().left(request);
    }

    /// Records that a request's charge changes to this cost; `None`: it is refunded.
    pub(super) fn settled(&self, request: &Request, cost: Option<Cost>) {
        self.note(request, format_args!("costs {cost:?}"));
        self.answers.borrow_mut().settled(request, cost);
        self.schedule_slots.borrow_mut().settled(request, cost);
        self.books.borrow_mut().settled(request, cost);
        let now = self.world.now();
        self.pace.borrow_mut().settled(request, cost, now);
    }

    /// Records a command that the store has run. Returns its claim of slots, if any.
    pub(super) fn store_ran(
        &self,
        gateway: usize,
        command: &[Vec<u8>],
        reply: &Reply,
    ) -> Option<ClaimId> {
        match ClaimCall::read(command, reply) {
            Ok(Some(call)) => return self.claimed(gateway, &call),
            Ok(None) => {}
            Err(wrong) => self.check(Err(wrong)),
        }
        if self.scenario_has_zones {
            self.store_ran_for_zones(command, reply);
        }
        None
    }

    /// Records a command for keys of zones that the store has run.
    fn store_ran_for_zones(&self, command: &[Vec<u8>], reply: &Reply) {
        if let [name, keys @ ..] = command
            && name == b"UNLINK"
        {
            for key in keys.iter().map(|key| String::from_utf8_lossy(key)) {
                self.world.note(format_args!("store: {key} is deleted"));
                self.schedule_slots.borrow_mut().deleted(&key);
            }
        }
        match ScriptCall::read(command, reply) {
            Ok(None) => {}
            Ok(Some(call)) => {
                self.world.note(format_args!("store: {call:?}"));
                let ran = self
                    .schedule_slots
                    .borrow_mut()
                    .store_ran(&call, self.world.now());
                self.check(ran);
                self.books.borrow_mut().store_ran(&call);
                self.pace.borrow_mut().store_ran(&call, self.world.now());
            }
            Err(wrong) => self.check(Err(wrong)),
        }
    }

    /// Records that the store has lost data, or that an operator made it forget a key.
    pub(super) fn store_forgot(&self) {
        self.world.note(format_args!("store: has forgotten"));
        self.schedule_slots.borrow_mut().store_forgot();
        self.pace.borrow_mut().store_forgot(self.world.now());
        let gates = &mut *self.gates.borrow_mut();
        gates.grid.store_forgot();
        gates.turns.forget();
    }

    /// Records that the store's clock has jumped.
    pub(super) fn jumped(&self, micros: i64) {
        let ahead = u64::try_from(micros).unwrap_or(0);
        self.pace.borrow_mut().jumped(Duration::from_micros(ahead));
        let gates = &mut *self.gates.borrow_mut();
        gates.answers.jumped(micros);
        gates.slots.jumped(self.world.now());
        gates.turns.forget();
    }

    /// Records whether a gateway is alone from now on.
    pub(super) fn goes_alone(&self, gateway: usize, is_alone: bool) {
        self.world
            .note(format_args!("gateway {gateway}: goes alone: {is_alone}"));
        let now = self.world.now();
        if is_alone {
            self.pace.borrow_mut().goes_alone(gateway, now);
            self.sharing.borrow_mut().goes_alone(gateway);
        } else {
            self.pace.borrow_mut().is_back(gateway, now);
            self.sharing.borrow_mut().is_back(gateway);
        }
    }

    /// Records that a gateway knows that it cannot reach the store, and may decide alone.
    pub(super) fn is_out(&self, gateway: usize) {
        self.sharing.borrow_mut().goes_alone(gateway);
    }

    /// Checks the end: no request waits, and the store has received everything.
    pub(super) fn over(&self, gateways: &[Rc<Gateway>]) {
        for gateway in gateways {
            self.check_gates(gateway);
            let mut sharing = (0..).map_while(|origin| gateway.sharing(origin));
            if gateway.is_out() || sharing.any(|sharing| sharing.is_alone) {
                self.remains(&format!("gateway {} is alone", gateway.number));
            }
        }
        self.check(self.books.borrow().check());
        self.check(self.schedule_slots.borrow().check());
    }

    /// Fails because something was not forgotten in the end.
    pub(super) fn remains(&self, what: &str) {
        self.check(Err(format!("{what} long after all is over")));
    }

    /// Records that a gateway has died: its requests get no response.
    pub(super) fn died(&self, gateway: usize, host: HostId) {
        self.answers.borrow_mut().died(host);
        self.gates.borrow_mut().died(gateway, host);
    }

    /// Records that all faults are over, and no more requests arrive.
    pub(super) fn healed(&self) {
        self.gates.borrow_mut().answers.healed(self.world.now());
    }

    /// Returns the number of waiting requests.
    pub(super) fn waiting(&self) -> usize {
        self.answers.borrow().waiting() + self.gates.borrow().answers.waiting()
    }

    /// Checks that no request has waited too long.
    pub(super) fn check_waiting(&self) {
        self.check(self.answers.borrow().check(self.world.now()));
        self.check(self.gates.borrow().answers.check(self.world.now()));
    }

    /// Returns the number of requests that a lease decided.
    ///
    /// These departed at once with a slot of the store, although a reply of the store takes longer.
    pub(super) fn leased(&self) -> u64 {
        self.leased.get()
    }

    /// Returns the number of requests that have joined.
    pub(super) fn joins(&self) -> u64 {
        self.next.get() + self.gates.borrow().count
    }

    /// Returns the counts of shared gates, as in [`Outcome`](super::run::Outcome).
    pub(super) fn gate_counts(&self) -> [u64; 4] {
        self.gates.borrow().counts()
    }

    /// Fails the simulation if a condition does not hold.
    fn check(&self, checked: Checked) {
        if let Err(wrong) = checked {
            self.world.fail(format_args!("{wrong}"));
        }
    }

    /// Adds a step of a request to the trace.
    fn note(&self, request: &Request, what: std::fmt::Arguments<'_>) {
        let (id, gateway) = (request.id, request.gateway);
        let (zone, key) = (request.zone, request.key);
        self.world.note(format_args!(
            "gateway {gateway}: request {id} of zone{zone}:{key} {what}"
        ));
    }
}

/// Returns whether a gateway decided the charge without the store.
fn is_alone(charge: Charge) -> bool {
    matches!(charge, Charge::Alone(_) | Charge::Own(_))
}
