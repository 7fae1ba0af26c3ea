//! Measures whether a deep queue makes its operations slower.

#[allow(dead_code, reason = "other benches use the rest")]
#[path = "support/measure.rs"]
mod measure;

use std::hint::black_box;
use std::time::Duration;

use limit::{Bucket, Cost, Delay, Limit, Moment, Queue, Rate, Ticket};

use measure::Bench;

const START: Moment = Moment::from_nanos(1_700_000_000_000_000_000);
const LIMIT: Limit = Limit {
    burst: u32::MAX,
    delay: Delay::Above(0),
    max_wait: None,
    cost: Cost::ONE,
    in_flight: None,
    above_burst: 0,
};

fn rate(text: &str) -> Rate {
    text.parse().expect("a rate")
}

/// Returns a queue of `depth` waiters with tickets 1 to `depth`.
///
/// At 1r/s the first is due in a second.
fn full(depth: u64) -> Queue<u64> {
    let mut queue = Queue::new(rate("1r/s"), Bucket::new(), START);
    for id in 0..=depth {
        queue.join(LIMIT, Ticket(id), START, || id);
    }
    queue
}

fn queues(bench: &Bench) {
    for depth in [10, 10_000] {
        let name = |what| format!("queue of {depth}: {what}");
        let (mut queue, ticket) = (full(depth), Ticket(depth + 1));
        bench.time(&name("join, and leave again"), || {
            queue.join(LIMIT, ticket, START, || 0);
            queue.leave(ticket)
        });
        bench.with_inputs(
            &name("leave from the middle"),
            || full(depth),
            |queue| queue.leave(Ticket(depth / 2)),
        );
        let (mut queue, mut now, mut id) = (full(depth), START, depth);
        bench.time(&name("take who is due, and join at the end"), || {
            now = now + Duration::from_secs(1);
            id += 1;
            black_box(queue.take_due(now));
            queue.join(LIMIT, Ticket(id), now, || id)
        });
        assert_eq!(queue.depth(), usize::try_from(depth).expect("a depth"));
        let (mut queue, mut turn) = (full(depth), 0);
        let rates = [rate("10r/s"), rate("1r/s")];
        bench.time(&name("retune"), || {
            turn += 1;
            queue.retune(rates[turn % 2], START);
        });
    }
}

fn main() {
    let bench = Bench::from_arguments();
    queues(&bench);
}
