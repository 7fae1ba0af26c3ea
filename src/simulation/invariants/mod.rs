//! What must hold after each step, whatever the seed.

mod answers;
mod order;
mod pace;
mod places;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use super::client::Visit;
use super::gateway::Gateway;
use super::redis::Reply;
use super::scenario::Scenario;
use super::world::{HostId, World};
use crate::actors::{Charge, Grant, Rejection};
use crate::limit::{Cost, Limit};
use crate::observe::metrics::Rejected;
use answers::Answers;
use order::Order;
use pace::Pace;
use places::Places;

/// A request of a client.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// Counts up, in the order in which requests join.
    id: u64,
    gateway: usize,
    /// Tells a gateway from the one before its restart.
    host: HostId,
    zone: usize,
    key: &'static str,
    limit: Limit,
    since: Duration,
}

/// All invariants. Each of them says what is wrong as an error.
pub(super) struct Invariants {
    world: Rc<World>,
    next: Cell<u64>,
    answers: RefCell<Answers>,
    order: RefCell<Order>,
    pace: RefCell<Pace>,
    places: RefCell<Places>,
}

/// Whether an invariant holds, or what is wrong.
type Checked = Result<(), String>;

impl Invariants {
    pub(super) fn new(world: &Rc<World>, scenario: &Rc<Scenario>) -> Rc<Self> {
        Rc::new(Self {
            world: Rc::clone(world),
            next: Cell::default(),
            answers: RefCell::new(Answers::new(scenario)),
            order: RefCell::new(Order::new(scenario)),
            pace: RefCell::new(Pace::new(scenario)),
            places: RefCell::default(),
        })
    }

    /// A client joins at a gateway.
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
        self.note(&request, format_args!("joins: {}", Briefly(&visit.limit)));
        self.answers.borrow_mut().joined(&request);
        request
    }

    /// Its turn has come.
    pub(super) fn departed(&self, request: &Request, grant: &Grant) {
        let now = self.world.now();
        self.note(request, format_args!("departs: {:?}", grant.charge));
        self.check(self.answers.borrow_mut().answered(request, now));
        self.check(self.order.borrow_mut().departed(request, grant));
        self.check(self.places.borrow_mut().departed(request, grant));
        self.check(self.pace.borrow_mut().departed(request, grant.charge, now));
    }

    /// It was rejected.
    pub(super) fn rejected(&self, request: &Request, rejection: &Rejection) {
        self.note(request, format_args!("is rejected: {:?}", rejection.reason));
        self.check(
            self.answers
                .borrow_mut()
                .answered(request, self.world.now()),
        );
        if rejection.reason == Rejected::Restart {
            self.check(Err("an actor panicked".to_owned()));
        }
    }

    /// Its client left while it waited.
    pub(super) fn left(&self, request: &Request) {
        self.note(request, format_args!("leaves"));
        self.answers.borrow_mut().left(request);
    }

    /// What it was charged is changed to this cost; `None`: it is given back.
    pub(super) fn settled(&self, request: &Request, cost: Option<Cost>) {
        self.note(request, format_args!("costs {cost:?}"));
        self.answers.borrow_mut().settled(request, cost);
        self.places.borrow_mut().settled(request, cost);
        self.pace.borrow_mut().settled(request, cost);
    }

    /// The store has run a command.
    pub(super) fn store_ran(&self, command: &[Vec<u8>], reply: &Reply) {
        let ran = self.places.borrow_mut().store_ran(command, reply);
        match ran {
            Ok(None) => {}
            Ok(Some(what)) => self.world.note(format_args!("store: {what}")),
            Err(wrong) => self.check(Err(wrong)),
        }
    }

    /// The store has lost data.
    pub(super) fn store_forgot(&self) {
        self.world.note(format_args!("store: has forgotten"));
        self.places.borrow_mut().store_forgot();
        self.pace.borrow_mut().store_forgot(self.world.now());
    }

    /// A gateway has died: its requests get no answer.
    pub(super) fn died(&self, host: HostId) {
        self.answers.borrow_mut().died(host);
    }

    /// How many requests wait for an answer.
    pub(super) fn waiting(&self) -> usize {
        self.answers.borrow().waiting()
    }

    /// Checks that nobody has waited too long.
    pub(super) fn check_waiting(&self) {
        self.check(self.answers.borrow().check(self.world.now()));
    }

    /// How many requests have joined.
    pub(super) fn joins(&self) -> u64 {
        self.next.get()
    }

    fn check(&self, checked: Checked) {
        if let Err(wrong) = checked {
            self.world.fail(format_args!("{wrong}"));
        }
    }

    fn note(&self, request: &Request, what: std::fmt::Arguments<'_>) {
        let Request {
            id,
            gateway,
            zone,
            key,
            ..
        } = request;
        self.world.note(format_args!(
            "gateway {gateway}: request {id} of zone{zone}:{key} {what}"
        ));
    }
}

/// A limit in few words.
struct Briefly<'a>(&'a Limit);

impl std::fmt::Display for Briefly<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Limit {
            burst,
            delay,
            max_wait,
            cost,
            ..
        } = self.0;
        write!(
            f,
            "burst {burst}, delay {delay:?}, max_wait {max_wait:?}, cost {cost:?}"
        )
    }
}

/// What a charge is, as far as invariants differ.
fn is_alone(charge: Charge) -> bool {
    matches!(charge, Charge::Alone(_) | Charge::Own(_))
}
