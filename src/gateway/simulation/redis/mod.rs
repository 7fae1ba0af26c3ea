//! A fake Redis in this process with the commands that drip uses. The caller sets its clock.
//!
//! It runs the real scripts of the store. The tests of `redis_server` compare it with a real Redis.

mod commands;
mod keys;
#[cfg(test)]
mod redis_server;
mod reply;
mod scripts;
mod struct_library;

use std::cell::RefCell;
use std::rc::Rc;

use ::redis::{Cmd, RedisResult, Value};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;

use crate::store::Url;
use crate::store::simulated::{Connection, Guard, Network, Wire, set_network};
use keys::Keys;
pub(super) use reply::Reply;
use scripts::Scripts;

/// Modification of each script before it runs. Only some tests modify scripts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    /// Code that is replaced; empty: none is.
    pub(super) right: &'static str,
    /// Code in its place.
    pub(super) wrong: &'static str,
}

impl Change {
    /// Leaves all scripts as they are.
    pub(super) const NONE: Self = Self {
        right: "",
        wrong: "",
    };

    /// Returns a script with the change.
    fn apply(self, code: &str) -> String {
        if self.right.is_empty() {
            return code.to_owned();
        }
        code.replace(self.right, self.wrong)
    }
}

/// The data and the scripts of a Redis.
pub(super) struct FakeRedis {
    database: Rc<RefCell<Database>>,
    scripts: Scripts,
}

/// State that commands use, including those of scripts.
#[derive(Default)]
struct Database {
    keys: Keys,
    /// Time in microseconds since the Unix epoch. Constant while a script runs.
    now: u64,
    is_read_only: bool,
    /// End of the replication ID, which changes with each start and failover.
    replication: u64,
}

/// Network on which a function answers each command at once.
struct Direct<F>(Rc<F>);

impl<F: Fn(&Cmd) -> RedisResult<Value> + 'static> Network for Direct<F> {
    fn dial(&self, _: &Url) -> LocalBoxFuture<'static, RedisResult<Connection>> {
        let there = Rc::new(Direct(Rc::clone(&self.0))) as Connection;
        std::future::ready(Ok(there)).boxed_local()
    }
}

impl<F: Fn(&Cmd) -> RedisResult<Value>> Wire for Direct<F> {
    fn send(
        &self,
        commands: Vec<Cmd>,
    ) -> LocalBoxFuture<'static, RedisResult<Vec<RedisResult<Value>>>> {
        let replies = commands.iter().map(|command| (self.0)(command)).collect();
        std::future::ready(Ok(replies)).boxed_local()
    }
}

/// Answers all commands of this thread at once, until the guard is dropped.
pub(super) fn answer_with(answer: impl Fn(&Cmd) -> RedisResult<Value> + 'static) -> Guard {
    set_network(Rc::new(Direct(Rc::new(answer))))
}

/// The data of a Redis at one time.
pub(super) struct Snapshot(Keys);

impl FakeRedis {
    /// Returns an empty Redis.
    pub(super) fn new(change: Change) -> Self {
        let database = Rc::<RefCell<Database>>::default();
        Self {
            scripts: Scripts::new(Rc::clone(&database), change),
            database,
        }
    }

    /// Runs a command at the time `now`, in microseconds since the Unix epoch.
    pub(super) fn run(&mut self, now: u64, command: &[Vec<u8>]) -> Reply {
        self.database.borrow_mut().now = now;
        let [name, args @ ..] = command else {
            return Reply::error("ERR unknown command");
        };
        match name.to_ascii_uppercase().as_slice() {
            b"EVAL" => self.scripts.eval(args),
            b"EVALSHA" => self.scripts.eval_hash(args),
            _ => self.database.borrow_mut().run(command),
        }
    }

    /// Sets whether writes are refused, as by a replica.
    pub(super) fn set_read_only(&self, is_read_only: bool) {
        self.database.borrow_mut().is_read_only = is_read_only;
    }

    /// Changes the replication ID, as a start or a failover does.
    pub(super) fn change_replication_id(&self) {
        self.database.borrow_mut().replication += 1;
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot(self.database.borrow().keys.clone())
    }

    /// Restores the data of a snapshot, without scripts.
    pub(super) fn restore(&mut self, snapshot: Snapshot) {
        self.database.borrow_mut().keys = snapshot.0;
        self.scripts.forget();
    }

    /// Deletes all data and scripts.
    pub(super) fn flush(&mut self) {
        self.restore(Snapshot(Keys::default()));
    }

    /// Returns the names of all keys that have not expired by `now`.
    pub(super) fn names(&self, now: u64) -> Vec<String> {
        self.database.borrow().keys.names(now)
    }
}
