//! A simulated origin that counts its simultaneous requests and checks the invariants.
//!
//! A permit is the right to run one request at the origin. Gateways share the permits through the
//! store.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use crate::simulation::scenario::OriginPlan;
use crate::simulation::world::World;

/// Maximum time until a lower maximum is in force at all gateways.
///
/// Running requests may take longer.
const RETUNE_TIME: Duration = Duration::from_millis(2500);

/// An origin that fails the simulation if it gets too many requests at once.
pub(super) struct CountingOrigin {
    world: Rc<World>,
    /// Ends of the requests at the origin.
    ends: RefCell<Vec<Duration>>,
    /// Maximum number of requests, as in the files.
    pub(super) most: Cell<usize>,
    /// Earlier maxima, each with the time until which it may be in force.
    before: RefCell<Vec<(Duration, usize)>>,
    /// Time for which permits of a vanished gateway are withheld.
    orphan: Duration,
    /// Whether the maximum must hold exactly.
    is_exact: Cell<bool>,
    /// Requests that have a permit but no connection yet.
    connecting: RefCell<BTreeMap<u64, Since>>,
    /// Requests that wait at gateways.
    waits: RefCell<BTreeMap<u64, Since>>,
    /// Number of the next entry in `connecting` or `waits`.
    next: Cell<u64>,
    /// Number of requests started so far.
    pub(super) started: Cell<u64>,
    /// Last start of a request, by gateway.
    last_start: RefCell<BTreeMap<usize, Duration>>,
}

/// A gateway, and the time since which a request is there.
type Since = (usize, Duration);

impl CountingOrigin {
    pub(super) fn new(world: &Rc<World>, plan: &OriginPlan) -> Self {
        Self {
            world: Rc::clone(world),
            ends: RefCell::default(),
            most: Cell::new(plan.max_in_flight.get().unwrap_or_default()),
            before: RefCell::default(),
            orphan: plan.orphan,
            is_exact: Cell::new(true),
            connecting: RefCell::default(),
            waits: RefCell::default(),
            next: Cell::new(0),
            started: Cell::new(0),
            last_start: RefCell::default(),
        }
    }

    /// Records another maximum in all files.
    pub(super) fn retuned(&self, most: usize) {
        let until = self.world.now() + RETUNE_TIME + self.orphan;
        let before = self.most.replace(most);
        let both = [(until, before), (until, most)];
        self.before.borrow_mut().extend(both);
    }

    /// Records that a gateway uses permits without the store from now on.
    ///
    /// The maximum may be exceeded then.
    pub(super) fn may_exceed(&self) {
        self.is_exact.set(false);
    }

    /// Returns the number of requests at the origin.
    fn in_use(&self) -> usize {
        let now = self.world.now();
        let mut ends = self.ends.borrow_mut();
        ends.retain(|end| *end > now);
        ends.len()
    }

    /// Returns the number of permits in use.
    pub(super) fn used(&self) -> usize {
        self.in_use() + self.connecting.borrow().len()
    }

    /// Returns the maximum number of requests allowed now.
    fn allowed(&self) -> usize {
        let now = self.world.now();
        let before = self.before.borrow();
        let before = before.iter().filter(|(until, _)| *until > now);
        let before = before.map(|(_, most)| *most).max();
        before.unwrap_or(0).max(self.most.get())
    }

    /// Records a request that stays for this long, even if its gateway dies.
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

    /// Records a request that has a permit and no connection, until the value is dropped.
    pub(super) fn connects(&self, gateway: usize) -> Listed<'_> {
        self.list(&self.connecting, gateway)
    }

    /// Records a request that waits at a gateway, until the value is dropped.
    ///
    /// The value is dropped when the request is admitted, its client leaves, or the gateway dies.
    pub(super) fn waits(&self, gateway: usize) -> Listed<'_> {
        self.list(&self.waits, gateway)
    }

    fn list<'a>(&'a self, list: &'a RefCell<BTreeMap<u64, Since>>, gateway: usize) -> Listed<'a> {
        let id = self.next.get();
        self.next.set(id + 1);
        let since = (gateway, self.world.now());
        list.borrow_mut().insert(id, since);
        Listed { list, id }
    }

    /// Returns the number of requests that wait at gateways.
    pub(super) fn waiting(&self) -> usize {
        self.waits.borrow().len()
    }

    /// Returns the gateway with the longest wait since its last start, or since `since`.
    pub(super) fn longest_without_start(&self, since: Duration) -> Option<(usize, Duration)> {
        let (now, last) = (self.world.now(), self.last_start.borrow());
        let waits = self.waits.borrow();
        let idle = waits.values().map(|(gateway, waits_since)| {
            let last = last.get(gateway).copied().unwrap_or_default();
            let from = last.max(*waits_since).max(since);
            (*gateway, now.saturating_sub(from))
        });
        idle.max_by_key(|(_, waits)| *waits)
    }
}

/// A request that is in a list until this is dropped.
pub(super) struct Listed<'a> {
    list: &'a RefCell<BTreeMap<u64, Since>>,
    id: u64,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.list.borrow_mut().remove(&self.id);
    }
}
