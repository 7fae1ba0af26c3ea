//! The simulated server of the store: it runs commands, and fails.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use super::clock::EPOCH;
use super::invariants::{ClaimId, Invariants};
use super::redis::{FakeRedis, Reply, Snapshot};
use super::world::World;

/// State of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreState {
    /// The server answers.
    Works,
    /// The process does not run: connections are refused.
    Dead,
    /// The server loads its data, and refuses all commands.
    Loading,
}

/// Result of serving a gateway's commands.
pub(super) struct Served {
    pub(super) replies: Vec<Reply>,
    /// Last claim among the commands, if any: a call that takes slots of a gate's schedule.
    pub(super) claim: Option<ClaimId>,
}

/// A Redis on its own host.
pub(super) struct StoreServer {
    world: Rc<World>,
    redis: RefCell<FakeRedis>,
    invariants: Rc<Invariants>,
    pub(super) state: Cell<StoreState>,
    /// Time for each command.
    pub(super) takes: Cell<Duration>,
    /// Time at which all commands that have arrived are done.
    busy_until: Cell<Duration>,
    /// Error of the server's clock in microseconds. Positive values are ahead.
    ahead: Cell<i64>,
}

impl StoreServer {
    pub(super) fn new(world: &Rc<World>, invariants: &Rc<Invariants>, redis: FakeRedis) -> Self {
        Self {
            world: Rc::clone(world),
            redis: RefCell::new(redis),
            invariants: Rc::clone(invariants),
            state: Cell::new(StoreState::Works),
            takes: Cell::default(),
            busy_until: Cell::default(),
            ahead: Cell::default(),
        }
    }

    /// Makes the clock jump.
    pub(super) fn jump(&self, micros: i64) {
        self.ahead.set(self.ahead.get() + micros);
    }

    pub(super) fn set_read_only(&self, is_read_only: bool) {
        self.redis.borrow().set_read_only(is_read_only);
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.redis.borrow().snapshot()
    }

    /// Restores the data of a snapshot: later writes are lost.
    pub(super) fn restore(&self, snapshot: Snapshot) {
        self.redis.borrow_mut().restore(snapshot);
        self.redis.borrow().change_replication_id();
        self.invariants.store_forgot();
    }

    /// Starts without data.
    pub(super) fn start_empty(&self) {
        self.flush();
        self.redis.borrow().change_replication_id();
    }

    /// Deletes all data.
    pub(super) fn flush(&self) {
        self.redis.borrow_mut().flush();
        self.invariants.store_forgot();
    }

    /// Returns the names of the server's keys.
    pub(super) fn names(&self) -> Vec<String> {
        self.redis.borrow().names(self.now())
    }

    /// Returns the time of the server's clock, in microseconds since the Unix epoch.
    pub(super) fn now(&self) -> u64 {
        let now = (EPOCH + self.world.now()).as_nanos() / 1000;
        now.saturating_add_signed(self.ahead.get())
    }

    /// Runs commands of a gateway that arrive now, one after another, after all earlier ones.
    ///
    /// Returns `None` if the server dies before.
    pub async fn serve(&self, gateway: usize, commands: Vec<Vec<Vec<u8>>>) -> Option<Served> {
        let work = self.takes.get() * u32::try_from(commands.len()).unwrap_or(u32::MAX);
        let done = self.busy_until.get().max(self.world.now()) + work;
        self.busy_until.set(done);
        self.world.sleep_until(done).await;
        if self.state.get() == StoreState::Dead {
            return None;
        }
        let (mut replies, mut claim) = (Vec::new(), None);
        for command in commands {
            let reply = self.run(&command);
            if self.state.get() == StoreState::Works {
                claim = self
                    .invariants
                    .store_ran(gateway, &command, &reply)
                    .or(claim);
            }
            replies.push(reply);
        }
        Some(Served { replies, claim })
    }

    /// Records that the gateway has received the reply to a claim, sent at `sent`.
    pub(super) fn received(&self, claim: ClaimId, sent: Duration) {
        self.invariants.received(claim, sent);
    }

    fn run(&self, command: &[Vec<u8>]) -> Reply {
        if self.state.get() == StoreState::Loading {
            return Reply::Error("LOADING Redis is loading the dataset in memory".to_owned());
        }
        self.redis.borrow_mut().run(self.now(), command)
    }
}
