use std::cell::{Cell, RefCell};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, ErrorKind, Pipeline, RedisError, RedisResult};
use redis::{ServerErrorKind, Value};

use super::{Answer, Error, Join, Refund, answer, script};

/// One thread's connection to the Redis that all gateways share.
///
/// It connects when it is first asked, and again when it is asked after a failure. Batches may overlap: they share the
/// connection, and each is answered by itself.
pub struct Store {
    client: Client,
    prefix: Vec<u8>,
    timeout: Duration,
    /// With its number, so that a failure of an old one does not end its successor.
    connection: RefCell<Option<(u64, MultiplexedConnection)>>,
    opened: Cell<u64>,
}

impl Store {
    /// The Redis at `url`; each of its keys begins with `prefix`, each batch takes at most `timeout`.
    ///
    /// # Errors
    ///
    /// Where the URL is none of a Redis. Whether one is there shows when it is asked.
    pub fn new(url: &str, prefix: &str, timeout: Duration) -> Result<Self, Error> {
        Ok(Self {
            client: Client::open(url).map_err(|error| Error::Url(error.to_string()))?,
            prefix: prefix.into(),
            timeout,
            connection: RefCell::new(None),
            opened: Cell::new(0),
        })
    }

    /// Decides all joins, in their order, in one round trip; an answer for each.
    pub async fn decide(&self, joins: &[Join<'_>]) -> Vec<Result<Answer, Error>> {
        let commands = joins.iter().map(|join| script::join(join, &self.prefix));
        let replies = self.run(commands.collect()).await;
        let answered = joins.iter().zip(replies);
        answered
            .map(|(join, reply)| answer::answer(join, reply?))
            .collect()
    }

    /// Gives charges back, in one round trip; tells of each whether anything was given back.
    ///
    /// Of a leaky bucket: the charge that goes with the **last** of the gateway's times for the key, after all who wait
    /// have taken the times of those before them.
    pub async fn refund(&self, refunds: &[Refund<'_>]) -> Vec<Result<bool, Error>> {
        let commands = refunds.iter().map(|it| script::refund(it, &self.prefix));
        let replies = self.run(commands.collect()).await;
        replies
            .into_iter()
            .map(|reply| answer::refunded(reply?))
            .collect()
    }

    /// Forgets all that was charged to a key, by whichever gateway. Who waits keeps its time.
    ///
    /// # Errors
    ///
    /// Where Redis was not reached in time, or refused.
    pub async fn forget(&self, key: &[u8]) -> Result<(), Error> {
        let replies = self.run(vec![script::forget(key, &self.prefix)]).await;
        replies.into_iter().try_for_each(|reply| reply.map(drop))
    }

    /// Runs commands in one round trip and within the timeout: a reply for each.
    async fn run(&self, commands: Vec<Cmd>) -> Vec<Result<Value, Error>> {
        let count = commands.len();
        if count == 0 {
            return Vec::new();
        }
        let used = Cell::new(0);
        let replies = tokio::time::timeout(self.timeout, self.ask(commands, &used)).await;
        let error = match replies {
            Ok(Ok(replies)) if replies.len() == count => return replies,
            Ok(Ok(_)) => Error::Nonsense,
            Ok(Err(error)) => Error::Unreachable(error.to_string()),
            Err(_) => Error::Late,
        };
        self.connection
            .borrow_mut()
            .take_if(|(number, _)| *number == used.get());
        vec![Err(error); count]
    }

    async fn ask(
        &self,
        commands: Vec<Cmd>,
        used: &Cell<u64>,
    ) -> RedisResult<Vec<Result<Value, Error>>> {
        let (number, mut connection) = self.connection().await?;
        used.set(number);
        let mut replies = send(&mut connection, &commands).await?;
        // Redis forgets scripts when it starts anew: those it did not know are sent once more, behind the scripts.
        let forgotten: Vec<usize> = (0..replies.len())
            .filter(|index| replies[*index].as_ref().is_err_and(is_forgotten))
            .collect();
        if !forgotten.is_empty() {
            let again = forgotten.iter().map(|index| commands[*index].clone());
            let scripts = script::load_all();
            let loaded = scripts.len();
            let all: Vec<Cmd> = scripts.into_iter().chain(again).collect();
            let known = send(&mut connection, &all).await?;
            let known = known.into_iter().skip(loaded);
            for (index, reply) in forgotten.into_iter().zip(known) {
                replies[index] = reply;
            }
        }
        let refused = |error: RedisError| Error::Refused(error.to_string());
        Ok(replies
            .into_iter()
            .map(|reply| reply.map_err(refused))
            .collect())
    }

    async fn connection(&self) -> RedisResult<(u64, MultiplexedConnection)> {
        if let Some(known) = &*self.connection.borrow() {
            return Ok(known.clone());
        }
        // The deadline of the batch is the only one.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None);
        let new = self
            .client
            .get_multiplexed_async_connection_with_config(&config)
            .await?;
        self.opened.set(self.opened.get() + 1);
        let new = (self.opened.get(), new);
        *self.connection.borrow_mut() = Some(new.clone());
        Ok(new)
    }
}

/// All commands in one write: a reply or an error for each.
async fn send(
    connection: &mut MultiplexedConnection,
    commands: &[Cmd],
) -> RedisResult<Vec<RedisResult<Value>>> {
    let mut pipeline = Pipeline::with_capacity(commands.len());
    pipeline.ignore_errors();
    for command in commands {
        pipeline.add_command(command.clone());
    }
    pipeline.query_async(connection).await
}

fn is_forgotten(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}
