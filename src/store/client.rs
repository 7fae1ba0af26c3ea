use std::cell::{Cell, RefCell};
use std::time::Duration;

use tokio::sync::Mutex;

use redis::{Cmd, ErrorKind, RedisError, RedisResult, ServerErrorKind, Value};

use super::connection::RedisConnection;
use super::script::By;
use super::{Error, Join, Refund, Retune, Retuned, StoreAnswer, Url, answer, script};

/// One thread's connection to the Redis that all gateways share.
///
/// It connects on first use, and again on the first use after a failure. Batches may overlap: they
/// share the connection, and each has its own answers.
pub struct Store {
    url: Url,
    prefix: Vec<u8>,
    timeout: Duration,
    /// With a number, so that the failure of an old connection does not end its successor.
    connection: RefCell<Option<(u64, RedisConnection)>>,
    opened: Cell<u64>,
    /// Held by the task that connects.
    opening: Mutex<()>,
}

/// Timeout for connecting when no request waits for the connection.
///
/// It is longer than the timeout for an answer. It is short enough that a Redis that is back is
/// noticed soon, for example after its machine was off the network.
const CONNECTED: Duration = Duration::from_secs(2);

impl Store {
    /// The Redis at `url`. Does not connect.
    ///
    /// Each key in Redis begins with `prefix`. Each batch takes at most `timeout`. Whether the
    /// server is reachable shows on first use.
    #[must_use]
    pub fn new(url: Url, prefix: &str, timeout: Duration) -> Self {
        Self {
            url,
            prefix: prefix.into(),
            timeout,
            connection: RefCell::new(None),
            opened: Cell::new(0),
            opening: Mutex::new(()),
        }
    }

    /// Decides all joins, in order and in one round trip. Returns an answer for each.
    pub async fn decide(&self, joins: &[Join<'_>]) -> Vec<Result<StoreAnswer, Error>> {
        let command = |index: usize, by| script::join(&joins[index], &self.prefix, by);
        let replies = self.run(joins.len(), command).await;
        let answered = joins.iter().zip(replies);
        answered
            .map(|(join, reply)| answer::answer(join, reply?))
            .collect()
    }

    /// Gives charges back in one round trip. Returns for each whether anything was given back.
    ///
    /// For a leaky bucket, pass the charge that belongs to the **last** of the gateway's times for
    /// the key. Before that, each waiter must have taken the time before its own.
    pub async fn refund(&self, refunds: &[Refund<'_>]) -> Vec<Result<bool, Error>> {
        let command = |index: usize, by| script::refund(&refunds[index], &self.prefix, by);
        let replies = self.run(refunds.len(), command).await;
        replies
            .into_iter()
            .map(|reply| answer::refunded(reply?))
            .collect()
    }

    /// Puts new rates into force for keys of leaky buckets, in one round trip.
    ///
    /// Returns the rate in force for each key.
    pub async fn retune(&self, retunes: &[Retune<'_>]) -> Vec<Result<Retuned, Error>> {
        let command = |index: usize, by| script::retune(&retunes[index], &self.prefix, by);
        let replies = self.run(retunes.len(), command).await;
        let answered = retunes.iter().zip(replies);
        answered
            .map(|(retune, reply)| answer::retuned(retune, reply?))
            .collect()
    }

    /// Forgets all charges to a key, by any gateway. Waiters keep their times.
    ///
    /// # Errors
    ///
    /// Returns an error if Redis was not reached in time or refused.
    pub async fn forget(&self, key: &[u8]) -> Result<(), Error> {
        self.alone(script::forget(key, &self.prefix)).await
    }

    /// Forgets the charges to a leaky bucket that has waiters, except those up to `last`.
    ///
    /// `last` is the charge that belongs to the last of the gateway's times. So new requests come
    /// behind the waiters and not between them.
    ///
    /// # Errors
    ///
    /// Returns an error in the same cases as [`forget`](Self::forget).
    pub async fn forget_behind(&self, last: &Refund<'_>) -> Result<(), Error> {
        let command = |_, by| script::forget_behind(last, &self.prefix, by);
        let replies = self.run(1, command).await;
        replies.into_iter().try_for_each(|reply| reply.map(drop))
    }

    /// Connects if there is no connection, and tests whether a write succeeds in time.
    ///
    /// Connecting may take longer than the timeout.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no connection or the write fails.
    pub async fn probe(&self) -> Result<(), Error> {
        match tokio::time::timeout(CONNECTED, self.connection()).await {
            Ok(Ok(_)) => self.alone(script::probe(&self.prefix)).await,
            Ok(Err(error)) => Err(Error::Unreachable(error.to_string())),
            Err(_) => Err(Error::Late),
        }
    }

    /// Drops the connection. The next use connects again.
    pub fn hang_up(&self) {
        self.connection.borrow_mut().take();
    }

    async fn alone(&self, command: Cmd) -> Result<(), Error> {
        let replies = self.run(1, |_, _| command.clone()).await;
        replies.into_iter().try_for_each(|reply| reply.map(drop))
    }

    /// Runs `count` commands in one round trip and within the timeout. Returns a reply for each.
    async fn run(
        &self,
        count: usize,
        command: impl Fn(usize, By) -> Cmd,
    ) -> Vec<Result<Value, Error>> {
        if count == 0 {
            return Vec::new();
        }
        let used = Cell::new(0);
        let asked = self.ask(count, command, &used);
        let error = match tokio::time::timeout(self.timeout, asked).await {
            Ok(Ok(replies)) if replies.len() == count => {
                let outage =
                    |reply: &Result<Value, Error>| reply.as_ref().is_err_and(Error::is_outage);
                if replies.iter().any(outage) {
                    // The host name may lead to another server by now.
                    self.drop_connection(used.get());
                }
                return replies;
            }
            Ok(Ok(_)) => Error::InvalidReply,
            Ok(Err(error)) => Error::Unreachable(error.to_string()),
            Err(_) => Error::Late,
        };
        self.drop_connection(used.get());
        vec![Err(error); count]
    }

    fn drop_connection(&self, number: u64) {
        let mut connection = self.connection.borrow_mut();
        connection.take_if(|(known, _)| *known == number);
    }

    async fn ask(
        &self,
        count: usize,
        command: impl Fn(usize, By) -> Cmd,
        used: &Cell<u64>,
    ) -> RedisResult<Vec<Result<Value, Error>>> {
        let (number, connection) = self.connection().await?;
        used.set(number);
        let commands: Vec<Cmd> = (0..count).map(|index| command(index, By::Hash)).collect();
        let mut replies = connection.send(&commands).await?;
        // Redis forgets scripts when it restarts. Send the commands with unknown scripts again in
        // full.
        let forgotten: Vec<usize> = (0..replies.len())
            .filter(|index| replies[*index].as_ref().is_err_and(is_forgotten))
            .collect();
        if !forgotten.is_empty() {
            let again = forgotten.iter().map(|index| command(*index, By::Code));
            let again: Vec<Cmd> = again.collect();
            let known = connection.send(&again).await?;
            for (index, reply) in forgotten.into_iter().zip(known) {
                replies[index] = reply;
            }
        }
        Ok(replies
            .into_iter()
            .map(|reply| reply.map_err(|error| refusal(&error)))
            .collect())
    }

    async fn connection(&self) -> RedisResult<(u64, RedisConnection)> {
        let known = || self.connection.borrow().clone();
        if let Some(known) = known() {
            return Ok(known);
        }
        let _opening = self.opening.lock().await;
        if let Some(known) = known() {
            return Ok(known);
        }
        let new = RedisConnection::open(&self.url).await?;
        self.opened.set(self.opened.get() + 1);
        let new = (self.opened.get(), new);
        *self.connection.borrow_mut() = Some(new.clone());
        Ok(new)
    }
}

fn is_forgotten(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

/// Tells whether a command was refused because of its key or because of the whole Redis.
///
/// Before Redis 7 the error that a script met is somewhere within the text.
fn refusal(error: &RedisError) -> Error {
    const OUTAGES: [&str; 12] = [
        "READONLY",
        "LOADING",
        "BUSY ",
        "OOM",
        "MISCONF",
        "NOREPLICAS",
        "MASTERDOWN",
        "CLUSTERDOWN",
        "TRYAGAIN",
        "NOAUTH",
        "NOPERM",
        "WRONGPASS",
    ];
    if error.is_io_error() || error.is_timeout() {
        return Error::Unreachable(error.to_string());
    }
    let text = format!("{} {error}", error.code().unwrap_or_default());
    if OUTAGES.iter().any(|code| text.contains(code)) {
        Error::NotWritable(error.to_string())
    } else {
        Error::Refused(error.to_string())
    }
}
