//! Tests of the store with a real Redis: verdicts equal those in memory, for many gateways.

mod backing_off;
mod batches;
mod grid;
mod learned;
mod live;
mod permits;
mod replay;
mod room;
mod schedule;
mod server;
mod settling;
mod traces;

use gateway::store::{Error, Join, Store, StoreAnswer, StoreRate};
use limit::{Algorithm, Cost, Delay, Limit, Moment};

/// The rate of a gateway whose file has had it since `since`, in seconds.
fn pace(rate: &str, algorithm: Algorithm, since: u64) -> StoreRate {
    let since = Moment::from_nanos(since * 1_000_000_000);
    StoreRate::new(rate.parse().expect("a rate"), algorithm, since).expect("a rate for Redis")
}

fn nodelay(burst: u32) -> Limit {
    Limit {
        burst,
        delay: Delay::Never,
        max_wait: None,
        cost: Cost::ONE,
        in_flight: None,
        above_burst: 0,
    }
}

fn waiting(burst: u32) -> Limit {
    Limit {
        delay: Delay::Above(0),
        ..nodelay(burst)
    }
}

/// Returns an instant in 2027, plus this many milliseconds.
fn at(millis: u64) -> Moment {
    Moment::from_nanos(1_800_000_000_000_000_000 + millis * 1_000_000)
}

/// Returns a join at a time, or now.
fn join<'a>(
    key: &'a [u8],
    algorithm: Algorithm,
    pace: &'a StoreRate,
    limit: Limit,
    at: Option<Moment>,
) -> Join<'a> {
    Join {
        key,
        algorithm,
        pace,
        limit,
        at,
    }
}

/// Sends a single join.
async fn ask(store: &Store, join: Join<'_>) -> Result<StoreAnswer, Error> {
    store.decide(&[join]).await.remove(0)
}
