//! The origin, which counts what is at once, and what must hold there.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use super::plan::PoolPlan;
use crate::simulation::world::World;

/// Longest time after which a lower maximum is in force everywhere, before what runs has ended.
const SPREADS: Duration = Duration::from_millis(2500);

/// An origin that breaks if it gets more than it takes at once.
pub(super) struct CountingOrigin {
    world: Rc<World>,
    /// When each request that is here ends.
    ends: RefCell<Vec<Duration>>,
    /// The maximum, and until when another one may have been in force.
    most: Cell<usize>,
    before: RefCell<Vec<(Duration, usize)>>,
    orphan: Duration,
    is_exact: Cell<bool>,
    /// Requests that have a place and do not have a connection yet.
    connecting: Cell<usize>,
    /// Requests that wait at gateways, with the moment since when.
    waits: RefCell<BTreeMap<u64, (usize, Duration)>>,
    next: Cell<u64>,
    started: Cell<u64>,
    /// When each gateway last started a request.
    last_start: RefCell<BTreeMap<usize, Duration>>,
}

impl CountingOrigin {
    pub(super) fn new(world: &Rc<World>, plan: &PoolPlan) -> Rc<Self> {
        Rc::new(Self {
            world: Rc::clone(world),
            ends: RefCell::default(),
            most: Cell::new(plan.most),
            before: RefCell::default(),
            orphan: plan.orphan,
            is_exact: Cell::new(true),
            connecting: Cell::new(0),
            waits: RefCell::default(),
            next: Cell::new(0),
            started: Cell::new(0),
            last_start: RefCell::default(),
        })
    }

    /// Another maximum is in a file from now on.
    pub(super) fn retuned(&self, most: usize) {
        let until = self.world.now() + SPREADS + self.orphan;
        self.before.borrow_mut().push((until, self.most.get()));
        self.before.borrow_mut().push((until, most));
        self.most.set(most);
    }

    /// A gateway takes places without asking from now on: more may be here.
    pub(super) fn may_exceed(&self) {
        self.is_exact.set(false);
    }

    /// How many are here.
    pub(super) fn in_use(&self) -> usize {
        let now = self.world.now();
        let mut ends = self.ends.borrow_mut();
        ends.retain(|end| *end > now);
        ends.len()
    }

    /// A request uses a place, but is not here yet, until the value is dropped.
    pub(super) fn connects(&self) -> impl Drop + use<'_> {
        self.connecting.set(self.connecting.get() + 1);
        Connecting(self)
    }

    /// How many places are used.
    pub(super) fn used(&self) -> usize {
        self.in_use() + self.connecting.get()
    }

    /// The most that may be here now.
    fn allowed(&self) -> usize {
        let now = self.world.now();
        let before = self.before.borrow();
        let before = before.iter().filter(|(until, _)| *until > now);
        let before = before.map(|(_, most)| *most).max();
        before.unwrap_or(0).max(self.most.get())
    }

    /// A request comes, and is here for so long, whatever becomes of its gateway.
    pub(super) fn starts(&self, gateway: usize, takes: Duration) {
        self.started.set(self.started.get() + 1);
        let now = self.world.now();
        self.last_start.borrow_mut().insert(gateway, now);
        self.ends.borrow_mut().push(now + takes);
        let (here, allowed) = (self.in_use(), self.allowed());
        self.world.note(format_args!(
            "gateway {gateway} starts a request that takes {takes:?}: {here} of {allowed}"
        ));
        if self.is_exact.get() && here > allowed {
            self.world.fail(format_args!(
                "{here} requests are at the origin, and at most {allowed} may be"
            ));
        }
    }

    /// A request waits at a gateway from now on.
    pub(super) fn waits(&self, gateway: usize) -> u64 {
        let id = self.next.get();
        self.next.set(id + 1);
        self.waits
            .borrow_mut()
            .insert(id, (gateway, self.world.now()));
        id
    }

    /// It waits no longer, as it goes on or its client has left.
    pub(super) fn goes_on(&self, id: u64) -> Duration {
        let known = self.waits.borrow_mut().remove(&id);
        known.map_or(Duration::ZERO, |(_, since)| {
            self.world.now().saturating_sub(since)
        })
    }

    /// A gateway has died, and with it all that waited there.
    pub(super) fn died(&self, gateway: usize) {
        self.waits.borrow_mut().retain(|_, (at, _)| *at != gateway);
    }

    pub(super) fn waiting(&self) -> usize {
        self.waits.borrow().len()
    }

    pub(super) fn started(&self) -> u64 {
        self.started.get()
    }

    /// The gateway that has waited longest since its last start, or since then.
    pub(super) fn longest_without_start(&self, since: Duration) -> Option<(usize, Duration)> {
        let (now, last) = (self.world.now(), self.last_start.borrow());
        let waits = self.waits.borrow();
        let each = waits.values().map(|(gateway, waits_since)| {
            let last = last.get(gateway).copied().unwrap_or_default();
            let from = last.max(*waits_since).max(since);
            (*gateway, now.saturating_sub(from))
        });
        each.max_by_key(|(_, waits)| *waits)
    }
}

struct Connecting<'a>(&'a CountingOrigin);

impl Drop for Connecting<'_> {
    fn drop(&mut self) {
        self.0.connecting.set(self.0.connecting.get() - 1);
    }
}
