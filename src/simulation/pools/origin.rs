//! The origin, which counts what is at once, and what must hold there.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use super::plan::PoolPlan;
use crate::simulation::world::World;

/// How often the use of places is looked at.
const LOOKS: Duration = Duration::from_millis(2);
/// Use is judged over spans of this length in which requests wait all the time.
const JUDGED: Duration = Duration::from_secs(2);
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
    /// Requests that wait at gateways, with the moment since when.
    waits: RefCell<BTreeMap<u64, (usize, Duration)>>,
    next: Cell<u64>,
    started: Cell<u64>,
    judged: Cell<u64>,
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
            waits: RefCell::default(),
            next: Cell::new(0),
            started: Cell::new(0),
            judged: Cell::new(0),
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
        self.ends.borrow_mut().push(self.world.now() + takes);
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

    pub(super) fn judged(&self) -> u64 {
        self.judged.get()
    }

    /// Fails if less than this part of the places is used while requests wait.
    pub(super) async fn watch(self: Rc<Self>, until: Duration, least: f64) {
        let (mut used, mut free, mut since) = (0.0, 0.0, self.world.now());
        while self.world.now() < until {
            self.world.sleep(LOOKS).await;
            let now = self.world.now();
            if self.waiting() == 0 {
                (used, free, since) = (0.0, 0.0, now);
                continue;
            }
            #[allow(clippy::cast_precision_loss)]
            {
                used += self.in_use().min(self.most.get()) as f64;
                free += self.most.get() as f64;
            }
            if now >= since + JUDGED {
                self.judged.set(self.judged.get() + 1);
                self.world
                    .note(format_args!("{:.3} of the places are used", used / free));
                if used < least * free {
                    self.world.fail(format_args!(
                        "requests wait, and only {:.3} of the places are used",
                        used / free
                    ));
                }
                (used, free, since) = (0.0, 0.0, now);
            }
        }
    }
}
