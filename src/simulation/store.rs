//! The server of the store: what it does with commands, and how it fails.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use super::clock::EPOCH;
use super::invariants::Invariants;
use super::redis::{FakeRedis, Reply, Snapshot};
use super::world::World;

/// How the server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Works,
    /// Its process does not run: whoever connects is refused.
    Dead,
    /// It loads its data, and refuses all else.
    Loading,
}

/// A Redis on a host of its own.
pub(super) struct StoreServer {
    world: Rc<World>,
    redis: RefCell<FakeRedis>,
    invariants: Rc<Invariants>,
    condition: Cell<Condition>,
    /// How long it takes for a command.
    takes: Cell<Duration>,
    /// When it is done with all commands that have arrived.
    busy_until: Cell<Duration>,
    /// How far its clock is ahead, in microseconds.
    ahead: Cell<i64>,
}

impl StoreServer {
    pub(super) fn new(world: &Rc<World>, invariants: &Rc<Invariants>, redis: FakeRedis) -> Self {
        Self {
            world: Rc::clone(world),
            redis: RefCell::new(redis),
            invariants: Rc::clone(invariants),
            condition: Cell::new(Condition::Works),
            takes: Cell::default(),
            busy_until: Cell::default(),
            ahead: Cell::default(),
        }
    }

    pub(super) fn condition(&self) -> Condition {
        self.condition.get()
    }

    pub(super) fn set_condition(&self, condition: Condition) {
        self.condition.set(condition);
    }

    /// How long it takes for each command from now on.
    pub(super) fn set_takes(&self, takes: Duration) {
        self.takes.set(takes);
    }

    /// Its clock jumps.
    pub(super) fn jump(&self, micros: i64) {
        self.ahead.set(self.ahead.get() + micros);
    }

    pub(super) fn set_read_only(&self, is_read_only: bool) {
        self.redis.borrow().set_read_only(is_read_only);
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.redis.borrow().snapshot()
    }

    /// Has the data of then: what was written since is lost.
    pub(super) fn restore(&self, snapshot: Snapshot) {
        self.redis.borrow_mut().restore(snapshot);
        self.invariants.store_forgot();
    }

    /// Loses all data.
    pub(super) fn flush(&self) {
        self.redis.borrow_mut().flush();
        self.invariants.store_forgot();
    }

    /// The names of the keys that it has.
    pub(super) fn names(&self) -> Vec<String> {
        self.redis.borrow().names(self.now())
    }

    /// Its clock, in microseconds since the Unix epoch.
    pub(super) fn now(&self) -> u64 {
        let now = (EPOCH + self.world.now()).as_nanos() / 1000;
        now.saturating_add_signed(self.ahead.get())
    }

    /// Runs commands that arrive now, one after another, once it has done all before them.
    ///
    /// `None` if it dies before that.
    pub(super) async fn serve(&self, commands: Vec<Vec<Vec<u8>>>) -> Option<Vec<Reply>> {
        let work = self.takes.get() * u32::try_from(commands.len()).unwrap_or(u32::MAX);
        let done = self.busy_until.get().max(self.world.now()) + work;
        self.busy_until.set(done);
        self.world.sleep_until(done).await;
        let replies = commands.into_iter().map(|command| self.run(&command));
        (self.condition.get() != Condition::Dead).then(|| replies.collect())
    }

    fn run(&self, command: &[Vec<u8>]) -> Reply {
        if self.condition.get() == Condition::Loading {
            return Reply::Error("LOADING Redis is loading the dataset in memory".to_owned());
        }
        let reply = self.redis.borrow_mut().run(self.now(), command);
        self.invariants.store_ran(command, &reply);
        reply
    }
}
