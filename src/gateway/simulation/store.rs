//! The server of the store: what it does with commands, and how it fails.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use super::clock::EPOCH;
use super::invariants::{ClaimId, Invariants};
use super::redis::{FakeRedis, Reply, Snapshot};
use super::world::World;

/// How the server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreState {
    Works,
    /// Its process does not run: whoever connects is refused.
    Dead,
    /// It loads its data, and refuses all else.
    Loading,
}

/// What a gateway is sent.
pub(super) struct Served {
    pub(super) replies: Vec<Reply>,
    /// The claim of slots among the commands, if there was one.
    pub(super) claim: Option<ClaimId>,
}

/// A Redis on a host of its own.
pub(super) struct StoreServer {
    world: Rc<World>,
    redis: RefCell<FakeRedis>,
    invariants: Rc<Invariants>,
    pub(super) state: Cell<StoreState>,
    /// How long it takes for each command.
    pub(super) takes: Cell<Duration>,
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
            state: Cell::new(StoreState::Works),
            takes: Cell::default(),
            busy_until: Cell::default(),
            ahead: Cell::default(),
        }
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
        self.redis.borrow().begin_anew();
        self.invariants.store_forgot();
    }

    /// Starts anew, without data.
    pub(super) fn start_empty(&self) {
        self.flush();
        self.redis.borrow().begin_anew();
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

    /// Runs commands of a gateway that arrive now, one after another, once it has done all before
    /// them.
    ///
    /// `None` if it dies before that.
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

    /// The gateway has got the reply to a claim, which it had begun to send at `sent`.
    pub(super) fn told(&self, claim: ClaimId, sent: Duration) {
        self.invariants.told(claim, sent);
    }

    fn run(&self, command: &[Vec<u8>]) -> Reply {
        if self.state.get() == StoreState::Loading {
            return Reply::Error("LOADING Redis is loading the dataset in memory".to_owned());
        }
        self.redis.borrow_mut().run(self.now(), command)
    }
}
