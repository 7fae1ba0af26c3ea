//! A Redis whose keys and clock the test names.

use std::cell::Cell;
use std::time::{Duration, Instant};

use gateway::store::Store;
use redis::FromRedisValue;

use crate::programs::redis::Redis;

/// A real Redis, and names of keys.
pub struct Server {
    pub redis: Redis,
    names: Cell<u64>,
}

impl Server {
    pub fn start() -> Self {
        Self {
            redis: Redis::start(),
            names: Cell::new(0),
        }
    }

    pub fn url(&self) -> String {
        self.redis.url()
    }

    pub fn store(&self) -> Store {
        let url = self.url().parse().expect("a URL");
        Store::new(url, "drip:", Duration::from_secs(5))
    }

    /// Returns a key that no test has used.
    pub fn key(&self) -> Vec<u8> {
        self.names.set(self.names.get() + 1);
        format!("zone:{}", self.names.get()).into_bytes()
    }

    /// Sends a command directly to Redis.
    pub fn ask<T: FromRedisValue>(&self, command: &str, args: &[&[u8]]) -> T {
        self.redis.query(command, args).expect("an answer")
    }
}

/// Returns the result of `work`, and its duration.
#[allow(clippy::disallowed_methods)]
pub async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let began = Instant::now();
    (work.await, began.elapsed())
}

/// Runs `test` with a real Redis, and a store in it.
pub fn in_redis<T>(test: impl AsyncFnOnce(&Server, Store) -> T) -> T {
    let server = Server::start();
    run(test(&server, server.store()))
}

/// Runs `test` on a runtime of one thread.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, test)
}
