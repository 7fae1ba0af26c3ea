//! Connection of one thread to the store, and the operations over it.

use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use config::tls::Authorities;
use limit::Moment;
use tokio::sync::Mutex;

use redis::{Cmd, RedisError, RedisResult, Value};

use super::calls::{Calls, MAX_KEYS, OperationLocation};
use super::connection::RedisConnection;
use super::operation::{Operation, ScriptCommand};
use super::patience::within;
use super::refusal::{is_across_nodes, is_forgotten, refusal, unreachable};
use super::reply::{Done, Reply};
use super::script::{Script, ScriptCall, SentScripts};
use super::unanswered::UnansweredKey;
use super::{Error, Join, Refund, Retune, Retuned, StoreAnswer, Url, answer, script};

/// Connection of one thread to the Redis that all gateways share.
///
/// It connects at its first use, and at the first use after a failure. Batches may overlap: they
/// share the connection, and each has its own answers.
pub struct Store {
    url: Url,
    prefix: Vec<u8>,
    timeout: Duration,
    /// Authorities for the server's certificate; `None`: those of the system.
    pub(super) authorities: Option<Authorities>,
    connection: RefCell<Option<Opened>>,
    opened: Cell<u64>,
    /// Lock of the task that connects.
    opening: Mutex<()>,
    /// Key of the node of a cluster that the next probe writes to.
    unanswered: UnansweredKey,
    /// Upper bound of keys in a call: 1 after a node of a cluster has refused several.
    most_keys: Cell<usize>,
    /// Whether a reply was invalid or a connection ended, and no script has succeeded since.
    is_suspect: Cell<bool>,
    /// Number of consecutive replies that were not from a Redis.
    foreign: Cell<u32>,
}

/// Open connection.
#[derive(Clone)]
struct Opened {
    /// Number of the connection, so that the failure of an old one does not end its successor.
    number: u64,
    connection: RedisConnection,
    sent: Rc<SentScripts>,
}

/// Timeout for connecting when no request waits for the connection.
///
/// Longer than the timeout for an answer, but short enough to notice soon that Redis is back.
const CONNECTED: Duration = Duration::from_secs(2);

/// Time between two tries while the store is unavailable.
const TRY_EVERY: Duration = Duration::from_millis(250);

/// Upper bound of the doublings of that time while the answers are not from a Redis: 8 seconds.
const MAX_DOUBLINGS: u32 = 5;

impl Store {
    /// Creates the connection to the Redis at `url`. Does not connect.
    ///
    /// Each key in Redis begins with `prefix`. Each batch takes at most `timeout`. Whether the
    /// server is reachable shows at the first use.
    pub fn new(url: Url, prefix: &str, timeout: Duration) -> Self {
        let most_keys = if url.is_cluster() { 1 } else { MAX_KEYS };
        Self {
            url,
            prefix: prefix.into(),
            timeout,
            authorities: None,
            connection: RefCell::new(None),
            opened: Cell::new(0),
            opening: Mutex::new(()),
            unanswered: UnansweredKey::default(),
            most_keys: Cell::new(most_keys),
            is_suspect: Cell::default(),
            foreign: Cell::default(),
        }
    }

    pub(super) fn is_cluster(&self) -> bool {
        self.url.is_cluster()
    }

    /// Returns how many keys a call may have.
    pub(super) fn most_keys(&self) -> usize {
        self.most_keys.get()
    }

    /// Returns the prefix of each key in Redis.
    pub(super) fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// Decides all joins, in order and in one round trip. Returns an answer for each.
    pub async fn decide(&self, joins: &[Join<'_>]) -> Vec<Result<StoreAnswer, Error>> {
        self.operate(ScriptCommand::Join, joins, |join, now, done, location| {
            let entry = done
                .entries
                .get(location.entry)
                .ok_or(Error::InvalidReply)?;
            answer::answer(join, now, done, entry, location.nth)
        })
        .await
    }

    /// Refunds charges in one round trip. Returns for each whether anything was refunded.
    ///
    /// For a leaky bucket, pass the charge that belongs to the **last** of the gateway's slots for
    /// the key. Before that, each later waiter must have moved up to the slot before its own.
    pub async fn refund(&self, refunds: &[Refund<'_>]) -> Vec<Result<bool, Error>> {
        self.operate(ScriptCommand::Refund, refunds, |_, _, done, location| {
            let entry = done
                .entries
                .get(location.entry)
                .ok_or(Error::InvalidReply)?;
            Ok(entry.done > 0)
        })
        .await
    }

    /// Puts new rates into force for keys of leaky buckets, in one round trip.
    ///
    /// Returns the rate in force for each key.
    pub async fn retune(&self, retunes: &[Retune<'_>]) -> Vec<Result<Retuned, Error>> {
        self.operate(ScriptCommand::Retune, retunes, |retune, now, done, _| {
            let in_force = answer::in_force(retune.pace, done)?;
            Ok(Retuned { now, in_force })
        })
        .await
    }

    /// Forgets all charges to a key, by any gateway. Waiters keep their slots.
    ///
    /// # Errors
    ///
    /// Returns an error if Redis was not reached in time or refused.
    pub async fn forget(&self, key: &[u8]) -> Result<(), Error> {
        self.alone(script::forget(key, &self.prefix)).await
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
        let done = self
            .operate(
                ScriptCommand::Forget,
                std::slice::from_ref(last),
                |_, _, _, _| Ok(()),
            )
            .await;
        done.into_iter().collect()
    }

    /// Makes a call that is about one thing, in one round trip.
    ///
    /// # Errors
    ///
    /// Returns an error if Redis was not reached in time or refused. The call may have had its
    /// effect all the same: slots of a claim that was [late](Error::Late) may be lost.
    pub async fn call<C: ScriptCall>(&self, call: &C) -> Result<C::Reply, Error> {
        let command = |_, sent: Option<&_>| {
            let (keys, packed) = (call.keys(), call.packed());
            script::command(C::SCRIPT, keys.iter(), &packed, &self.prefix, sent)
        };
        let reply = self.run(1, command).await.pop();
        self.read(&reply.ok_or(Error::InvalidReply)??, |it| call.read(it))?
    }

    /// Reads a script's reply, and notes whether it is valid.
    pub(super) fn read<T>(
        &self,
        reply: &Value,
        read: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<T, Error> {
        let read = match reply {
            Value::BulkString(packed) => read(packed),
            _ => None,
        };
        self.note_validity(read.is_some());
        read.ok_or(Error::InvalidReply)
    }

    /// Connects if there is no connection, and tests whether a write succeeds in time.
    ///
    /// In a cluster it writes to the node that failed last, if a key of that node is known.
    ///
    /// Connecting may take longer than the timeout.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no connection or the write fails. Returns none if only this
    /// write is refused.
    pub async fn probe(&self) -> Result<(), Error> {
        match tokio::time::timeout(CONNECTED, self.connection()).await {
            Ok(Ok(_)) => {
                let beside = self.unanswered.take();
                let probe = script::probe(&self.prefix, beside.as_deref());
                let mut probed = self.alone(probe).await;
                if probed.is_ok() && self.is_suspect.get() {
                    probed = self.probe_script().await;
                }
                let probed = match probed {
                    // A refusal is not an outage, and other commands may be allowed.
                    Err(refused) if !refused.is_outage() => Ok(()),
                    probed => probed,
                };
                if let (Err(_), Some(key)) = (&probed, beside) {
                    self.unanswered.note(key);
                }
                probed
            }
            Ok(Err(error)) => Err(self.no_connection(&error)),
            Err(_) => Err(Error::Late),
        }
    }

    /// Tests whether scripts run: a server that accepts any command need not be a Redis.
    async fn probe_script(&self) -> Result<(), Error> {
        let command = script::probe_script(&self.prefix);
        let reply = self.run(1, |_, _| command.clone()).await.pop();
        match reply.ok_or(Error::InvalidReply)?? {
            // Only replies of the real scripts shorten the pauses between tries again.
            Value::BulkString(echo) if echo == script::ECHO => {
                self.is_suspect.set(false);
                Ok(())
            }
            _ => {
                self.note_validity(false);
                Err(Error::InvalidReply)
            }
        }
    }

    /// Returns the time until the next [probe](Self::probe) of an unavailable store.
    ///
    /// It grows while the answers are not from a Redis.
    pub fn next_try(&self) -> Duration {
        TRY_EVERY * (1 << self.foreign.get().saturating_sub(1).min(MAX_DOUBLINGS))
    }

    /// Notes whether a script's reply was valid.
    fn note_validity(&self, is_valid: bool) {
        if is_valid {
            self.foreign.set(0);
        } else {
            self.is_suspect.set(true);
            self.foreign.set(self.foreign.get().saturating_add(1));
        }
    }

    /// Returns the error for a failed connection.
    fn no_connection(&self, error: &RedisError) -> Error {
        let error = unreachable(error);
        if error.is_foreign() {
            self.note_validity(false);
        }
        error
    }

    /// Drops the connection. The next use connects again.
    pub fn hang_up(&self) {
        self.connection.borrow_mut().take();
    }

    /// Runs one command, and drops its reply.
    async fn alone(&self, command: Cmd) -> Result<(), Error> {
        let replies = self.run(1, |_, _| command.clone()).await;
        replies.into_iter().try_for_each(|reply| reply.map(drop))
    }

    /// Executes all operations by scripts, in order and in one round trip.
    ///
    /// `answer` makes each answer from the reply for the key and the operation's location in it.
    async fn operate<'o, O, T>(
        &self,
        asked: ScriptCommand,
        operations: &'o [O],
        answer: impl Fn(&O, Moment, &Done, OperationLocation) -> Result<T, Error>,
    ) -> Vec<Result<T, Error>>
    where
        Operation<'o>: From<&'o O>,
    {
        let most_keys = self.most_keys.get();
        let calls_of = |most| Calls::of(asked, operations.iter().map(Operation::from), most);
        let mut calls = calls_of(most_keys);
        let mut replies = self.run_calls(&calls).await;
        let is_refused = |reply: &Result<_, _>| matches!(reply, Err(Error::Refused(_)));
        if self.most_keys.get() < most_keys && replies.iter().any(is_refused) {
            // A call for several keys did nothing. The other calls are repeated, too, which charges
            // their keys once more. Only the first batches on a connection meet this.
            calls = calls_of(self.most_keys.get());
            replies = self.run_calls(&calls).await;
        }
        let read = replies.into_iter().zip(&calls.calls);
        let read: Vec<Result<Reply, Error>> = read
            .map(|(reply, call)| self.read(&reply?, |packed| Reply::read(call, packed)))
            .collect();
        let located = operations.iter().zip(&calls.locations);
        located
            .map(|(operation, location)| {
                let reply = read.get(location.call).ok_or(Error::InvalidReply)?;
                let reply = reply.as_ref().map_err(Error::clone)?;
                let done = reply.keys.get(location.key).ok_or(Error::InvalidReply)?;
                let done = done.as_ref().map_err(Error::clone)?;
                answer(operation, reply.now, done, *location)
            })
            .collect()
    }

    /// Runs all calls in one round trip. Returns a reply for each.
    async fn run_calls(&self, calls: &Calls<'_>) -> Vec<Result<Value, Error>> {
        let calls = &calls.calls;
        let command = |index: usize, sent: Option<&_>| {
            let call = &calls[index];
            let (script, keys) = (Script::of(call.algorithm), call.keys.iter());
            script::command(script, keys, &call.packed(), &self.prefix, sent)
        };
        self.run(calls.len(), command).await
    }

    /// Runs `count` commands in one round trip and within the timeout. Returns a reply for each.
    pub(super) async fn run(
        &self,
        count: usize,
        command: impl Fn(usize, Option<&SentScripts>) -> Cmd,
    ) -> Vec<Result<Value, Error>> {
        if count == 0 {
            return Vec::new();
        }
        let used = Cell::new(0);
        let asked = pin!(self.ask(count, command, &used));
        let error = match within(self.timeout, asked).await {
            Ok(Ok(replies)) if replies.len() == count => {
                let outage =
                    |reply: &Result<Value, Error>| reply.as_ref().is_err_and(Error::is_outage);
                if replies.iter().any(outage) {
                    // The host name may resolve to another server by now.
                    self.drop_connection(used.get());
                }
                return replies;
            }
            Ok(Ok(_)) => Error::InvalidReply,
            Ok(Err(error)) => {
                // The server may be unable to answer scripts.
                self.is_suspect.set(self.is_suspect.get() || used.get() > 0);
                self.no_connection(&error)
            }
            Err(_) => Error::Late,
        };
        self.drop_connection(used.get());
        vec![Err(error); count]
    }

    /// Drops the connection if it is still the one with this number.
    fn drop_connection(&self, number: u64) {
        let mut connection = self.connection.borrow_mut();
        connection.take_if(|known| known.number == number);
    }

    /// Sends commands over the connection. Sets `used` to the number of the connection.
    async fn ask(
        &self,
        count: usize,
        command: impl Fn(usize, Option<&SentScripts>) -> Cmd,
        used: &Cell<u64>,
    ) -> RedisResult<Vec<Result<Value, Error>>> {
        let Opened {
            number,
            connection,
            sent,
        } = self.connection().await?;
        used.set(number);
        let commands: Vec<Cmd> = (0..count)
            .map(|index| command(index, Some(&sent)))
            .collect();
        let mut replies = connection.send(commands, &self.unanswered).await?;
        // Scripts can be flushed, and another node of a cluster may not have received them. Send
        // the commands with unknown scripts again, with their source code.
        let forgotten: Vec<usize> = (0..replies.len())
            .filter(|index| replies[*index].as_ref().is_err_and(is_forgotten))
            .collect();
        if !forgotten.is_empty() {
            let again = forgotten.iter().map(|index| command(*index, None));
            let again: Vec<Cmd> = again.collect();
            let known = connection.send(again, &self.unanswered).await?;
            for (index, reply) in forgotten.into_iter().zip(known) {
                replies[index] = reply;
            }
        }
        if replies
            .iter()
            .any(|reply| reply.as_ref().is_err_and(is_across_nodes))
        {
            self.most_keys.set(1);
        }
        Ok(replies
            .into_iter()
            .map(|reply| reply.map_err(|error| refusal(&error)))
            .collect())
    }

    /// Returns the open connection, or opens one.
    async fn connection(&self) -> RedisResult<Opened> {
        let known = || self.connection.borrow().clone();
        if let Some(known) = known() {
            return Ok(known);
        }
        let _opening = self.opening.lock().await;
        if let Some(known) = known() {
            return Ok(known);
        }
        let connection = RedisConnection::open(&self.url, self.authorities.as_ref()).await?;
        self.opened.set(self.opened.get() + 1);
        let new = Opened {
            number: self.opened.get(),
            connection,
            sent: Rc::default(),
        };
        *self.connection.borrow_mut() = Some(new.clone());
        Ok(new)
    }
}
