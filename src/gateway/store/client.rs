//! Connection of one thread to Redis (the *store*), and the operations over it.
//!
//! A *batch* is what is sent in one round trip. It consists of *calls* of scripts, and a call of
//! *operations* on keys (`calls`, `operation`). `probe` tests whether an unavailable store is back.
//! `link` adds outages and the store's clock.

use std::cell::{Cell, OnceCell, RefCell};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use config::tls::Authorities;
use redis::{Cmd, RedisError, RedisResult, Value};
use tokio::sync::Mutex;

use super::calls::{Calls, MAX_KEYS};
use super::connection::RedisConnection;
use super::operation::{Operation, ScriptCommand};
use super::probe::Doubt;
use super::refusal::{is_for_several_nodes, is_unknown_script, refusal, unreachable};
use super::reply::{OperationReply, Reply};
use super::script::{Script, ScriptCall, SentScripts};
use super::timeout::within;
use super::unanswered_key::UnansweredKey;
use super::{Error, Join, Refund, Retune, Retuned, StoreAnswer, Url, answer, script};

/// Connection of one thread to the Redis that all gateways share.
///
/// It connects at its first use, and at the first use after a failure. Batches may overlap: they
/// share the connection, and each has its own answers.
pub struct Store {
    pub(super) url: Url,
    /// Prefix of each key in Redis.
    pub(super) prefix: Vec<u8>,
    timeout: Duration,
    /// Authorities for the server's certificate; `None`: those of the system.
    pub(super) authorities: Option<Authorities>,
    /// Open connection; `None`: the next use connects.
    connection: RefCell<Option<OpenConnection>>,
    /// Held by the task that connects.
    connecting: Mutex<()>,
    /// Key of a cluster's node that did not answer: the next probe writes to that node.
    pub(super) unanswered: UnansweredKey,
    /// Upper bound of keys in a call: 1 after a node of a cluster has refused several.
    max_keys: Cell<usize>,
    /// Doubt whether the server is a Redis.
    pub(super) doubt: Doubt,
}

/// Open connection.
#[derive(Clone)]
pub(super) struct OpenConnection {
    connection: RedisConnection,
    /// Scripts that the server knows. Each connection has a value of its own, which identifies it.
    sent: Rc<SentScripts>,
}

impl Store {
    /// Creates the connection to the Redis at `url`. Does not connect.
    ///
    /// Each key in Redis begins with `prefix`. Each batch takes at most `timeout`. Whether the
    /// server is reachable shows at the first use.
    pub fn new(url: Url, prefix: &str, timeout: Duration) -> Self {
        let max_keys = if url.is_cluster() { 1 } else { MAX_KEYS };
        Self {
            url,
            prefix: prefix.into(),
            timeout,
            authorities: None,
            connection: RefCell::new(None),
            connecting: Mutex::new(()),
            unanswered: UnansweredKey::default(),
            max_keys: Cell::new(max_keys),
            doubt: Doubt::default(),
        }
    }

    /// Returns how many keys a call may have.
    pub(super) fn max_keys(&self) -> usize {
        self.max_keys.get()
    }

    /// Decides all joins, in order and in one round trip. Returns an answer for each.
    pub async fn decide(&self, joins: &[Join<'_>]) -> Vec<Result<StoreAnswer, Error>> {
        self.operate(ScriptCommand::Join, joins, answer::answer)
            .await
    }

    /// Refunds charges in one round trip. Returns for each whether anything was refunded.
    ///
    /// For a leaky bucket, pass the charge that belongs to the **last** of the gateway's slots for
    /// the key. Before that, each later waiter must have moved up to the slot before its own.
    pub async fn refund(&self, refunds: &[Refund<'_>]) -> Vec<Result<bool, Error>> {
        let answer = |_: &_, reply: &OperationReply<'_>| Ok(reply.entry.done_count > 0);
        self.operate(ScriptCommand::Refund, refunds, answer).await
    }

    /// Puts new rates into force for keys of leaky buckets, in one round trip.
    ///
    /// Returns the rate in force for each key.
    pub async fn retune(&self, retunes: &[Retune<'_>]) -> Vec<Result<Retuned, Error>> {
        let answer = |retune: &Retune<'_>, reply: &OperationReply<'_>| {
            let in_force = answer::in_force(retune.pace, reply.key)?;
            let now = reply.now;
            Ok(Retuned { now, in_force })
        };
        self.operate(ScriptCommand::Retune, retunes, answer).await
    }

    /// Forgets all charges to a key, by any gateway. Waiters keep their slots.
    ///
    /// # Errors
    ///
    /// Returns an error if Redis was not reached in time or refused.
    pub async fn forget(&self, key: &[u8]) -> Result<(), Error> {
        let command = script::forget(key, &self.prefix);
        self.run_one(|_| command.clone()).await.map(drop)
    }

    /// Forgets the charges to a leaky bucket that has waiters, except those up to `last`.
    ///
    /// `last` is the charge that belongs to the last of the gateway's slots. So new requests come
    /// behind the waiters and not between them.
    ///
    /// # Errors
    ///
    /// Returns an error in the same cases as [`forget`](Self::forget).
    pub async fn forget_behind(&self, last: &Refund<'_>) -> Result<(), Error> {
        let last = std::slice::from_ref(last);
        let forgotten = self.operate(ScriptCommand::Forget, last, |_, _| Ok(()));
        forgotten.await.into_iter().collect()
    }

    /// Makes a call of a script that is not about a zone's bucket, in one round trip.
    ///
    /// # Errors
    ///
    /// Returns an error if Redis was not reached in time or refused. The call may have had its
    /// effect all the same. For example, a *claim* takes slots of a gate: if it was
    /// [late](Error::Late), its slots may be lost.
    pub async fn call<C: ScriptCall>(&self, call: &C) -> Result<C::Reply, Error> {
        let (keys, packed) = (call.keys(), call.packed());
        let command =
            |sent: Option<&_>| script::command(C::SCRIPT, keys.iter(), &packed, &self.prefix, sent);
        let reply = self.run_one(command).await?;
        // The outer error is an invalid reply. A valid reply may be a refusal, the inner error.
        self.read(&reply, |packed| call.read(packed))?
    }

    /// Reads a script's reply, and records whether it is valid.
    pub(super) fn read<T>(
        &self,
        reply: &Value,
        read: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<T, Error> {
        let read = match reply {
            Value::BulkString(packed) => read(packed),
            _ => None,
        };
        self.doubt.note_validity(read.is_some());
        read.ok_or(Error::InvalidReply)
    }

    /// Returns the error for a failed connection.
    pub(super) fn connection_error(&self, error: &RedisError) -> Error {
        let error = unreachable(error);
        if error.is_foreign() {
            self.doubt.note_validity(false);
        }
        error
    }

    /// Drops the connection. The next use connects again.
    pub fn hang_up(&self) {
        self.connection.borrow_mut().take();
    }

    /// Executes all operations by scripts, in order and in one round trip.
    ///
    /// `answer` makes the answer to an operation from its reply.
    async fn operate<'o, O, T>(
        &self,
        command: ScriptCommand,
        operations: &'o [O],
        answer: impl Fn(&O, &OperationReply<'_>) -> Result<T, Error>,
    ) -> Vec<Result<T, Error>>
    where
        Operation<'o>: From<&'o O>,
    {
        let group =
            |max_keys| Calls::group(command, operations.iter().map(Operation::from), max_keys);
        let max_keys = self.max_keys();
        let mut calls = group(max_keys);
        let mut replies = self.run_calls(&calls).await;
        if self.must_split(max_keys, &replies) {
            // The calls that succeeded are repeated, too, which charges their keys once more. This
            // happens only to the first batches of a thread, as `max_keys` then stays 1.
            calls = group(self.max_keys());
            replies = self.run_calls(&calls).await;
        }
        let replies = replies.into_iter().zip(&calls.calls);
        let replies: Vec<Result<Reply, Error>> = replies
            .map(|(reply, call)| self.read(&reply?, |packed| Reply::read(call, packed)))
            .collect();
        let located = operations.iter().zip(&calls.locations);
        located
            .map(|(operation, location)| {
                let reply = replies[location.call].as_ref().map_err(Error::clone)?;
                let key = reply.keys[location.key].as_ref().map_err(Error::clone)?;
                let reply = OperationReply {
                    now: reply.now,
                    key,
                    entry: &key.entries[location.entry],
                    nth: location.nth,
                };
                answer(operation, &reply)
            })
            .collect()
    }

    /// Runs all calls in one round trip. Returns a reply for each.
    async fn run_calls(&self, calls: &Calls<'_>) -> Vec<Result<Value, Error>> {
        let calls = &calls.calls;
        let command = |index: usize, sent: Option<&_>| {
            let call = &calls[index];
            let (script, keys) = (Script::for_algorithm(call.algorithm), call.keys.iter());
            script::command(script, keys, &call.packed(), &self.prefix, sent)
        };
        self.run(calls.len(), command).await
    }

    /// Returns whether calls with up to `max_keys` keys each must be repeated with fewer keys.
    ///
    /// True if a call was refused because its keys are on several nodes of a cluster. Such a call
    /// did nothing.
    pub(super) fn must_split<T>(&self, max_keys: usize, replies: &[Result<T, Error>]) -> bool {
        let is_refused = |reply: &Result<_, _>| matches!(reply, Err(Error::Refused(_)));
        self.max_keys() < max_keys && replies.iter().any(is_refused)
    }

    /// Runs one command within the timeout.
    pub(super) async fn run_one(
        &self,
        command: impl Fn(Option<&SentScripts>) -> Cmd,
    ) -> Result<Value, Error> {
        let mut replies = self.run(1, |_, sent| command(sent)).await;
        replies.pop().unwrap_or(Err(Error::InvalidReply))
    }

    /// Runs `count` commands in one round trip and within the timeout. Returns a reply for each.
    ///
    /// `command` makes the command with an index. `None` instead of the sent scripts: it must
    /// contain the script's source code.
    pub(super) async fn run(
        &self,
        count: usize,
        command: impl Fn(usize, Option<&SentScripts>) -> Cmd,
    ) -> Vec<Result<Value, Error>> {
        if count == 0 {
            return Vec::new();
        }
        // Connection that was used; empty if connecting failed or took too long.
        let used = OnceCell::new();
        let sending = pin!(self.send(count, command, &used));
        let error = match within(self.timeout, sending).await {
            Ok(Ok(replies)) if replies.len() == count => {
                let mut errors = replies.iter().filter_map(|reply| reply.as_ref().err());
                if errors.any(Error::is_outage) {
                    // The host name may resolve to another server by now.
                    self.drop_connection(used.get());
                }
                return replies;
            }
            Ok(Ok(_)) => Error::InvalidReply,
            Ok(Err(error)) => {
                if used.get().is_some() {
                    // The connection was open and failed during the commands: the server may be no
                    // Redis that runs scripts. So the next probe runs one.
                    self.doubt.suspect();
                }
                self.connection_error(&error)
            }
            Err(_) => Error::Late,
        };
        self.drop_connection(used.get());
        vec![Err(error); count]
    }

    /// Drops the connection if it is still the one that was `used`.
    fn drop_connection(&self, used: Option<&OpenConnection>) {
        let is_used =
            |open: &mut OpenConnection| used.is_some_and(|used| Rc::ptr_eq(&used.sent, &open.sent));
        self.connection.borrow_mut().take_if(is_used);
    }

    /// Sends commands over the connection, and sets `used` to that connection.
    async fn send(
        &self,
        count: usize,
        command: impl Fn(usize, Option<&SentScripts>) -> Cmd,
        used: &OnceCell<OpenConnection>,
    ) -> RedisResult<Vec<Result<Value, Error>>> {
        let opened = self.connection().await?;
        let OpenConnection { connection, sent } = used.get_or_init(|| opened);
        let commands = (0..count).map(|index| command(index, Some(sent)));
        let sending = connection.send(commands.collect(), &self.unanswered);
        let mut replies = sending.await?;
        // Scripts can be flushed, and another node of a cluster may not have received them. Send
        // the commands with unknown scripts again, with their source code.
        let unknown: Vec<usize> = (0..replies.len())
            .filter(|index| replies[*index].as_ref().is_err_and(is_unknown_script))
            .collect();
        if !unknown.is_empty() {
            let again = unknown.iter().map(|index| command(*index, None));
            let repeated = connection.send(again.collect(), &self.unanswered).await?;
            for (index, reply) in unknown.into_iter().zip(repeated) {
                replies[index] = reply;
            }
        }
        let mut errors = replies.iter().filter_map(|reply| reply.as_ref().err());
        if errors.any(is_for_several_nodes) {
            self.max_keys.set(1);
        }
        let classify = |reply: RedisResult<Value>| reply.map_err(|error| refusal(&error));
        Ok(replies.into_iter().map(classify).collect())
    }

    /// Returns the open connection, or opens one.
    pub(super) async fn connection(&self) -> RedisResult<OpenConnection> {
        let open = || self.connection.borrow().clone();
        if let Some(open) = open() {
            return Ok(open);
        }
        let _connecting = self.connecting.lock().await;
        if let Some(open) = open() {
            return Ok(open);
        }
        let new = OpenConnection {
            connection: RedisConnection::open(&self.url, self.authorities.as_ref()).await?,
            sent: Rc::default(),
        };
        *self.connection.borrow_mut() = Some(new.clone());
        Ok(new)
    }
}
