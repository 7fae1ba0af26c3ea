//! Measures whether a deep queue makes its operations slower.

#[path = "support/thread_time.rs"]
mod thread_time;

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use limit::{Bucket, Cost, Delay, Limit, Moment, Queue, Rate, Ticket};

use thread_time::ThreadTime;

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

/// A queue of `depth` waiters with tickets 1 to `depth`. At 1r/s the first is due in a second.
fn full(depth: u64) -> Queue<u64> {
    let mut queue = Queue::new(rate("1r/s"), Bucket::new(), START);
    for id in 0..=depth {
        queue.join(LIMIT, Ticket(id), START, || id);
    }
    queue
}

fn queues(c: &mut Criterion<ThreadTime>) {
    for depth in [10, 10_000] {
        let mut group = c.benchmark_group(format!("queue of {depth}"));
        group.bench_function("join, and leave again", |b| {
            let mut queue = full(depth);
            let ticket = Ticket(depth + 1);
            b.iter(|| {
                queue.join(LIMIT, ticket, START, || 0);
                black_box(queue.leave(ticket))
            });
        });
        group.bench_function("leave from the middle", |b| {
            b.iter_batched_ref(
                || full(depth),
                |queue| black_box(queue.leave(Ticket(depth / 2))),
                BatchSize::LargeInput,
            );
        });
        group.bench_function("take who is due, and join at the end", |b| {
            let mut queue = full(depth);
            let (mut now, mut id) = (START, depth);
            b.iter(|| {
                now = now + Duration::from_secs(1);
                id += 1;
                black_box(queue.take_due(now));
                queue.join(LIMIT, Ticket(id), now, || id)
            });
            assert_eq!(queue.depth(), usize::try_from(depth).expect("a depth"));
        });
        group.bench_function("retune", |b| {
            let mut queue = full(depth);
            let rates = [rate("10r/s"), rate("1r/s")];
            let mut turn = 0;
            b.iter(|| {
                turn += 1;
                queue.retune(rates[turn % 2], START);
            });
        });
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(ThreadTime);
    targets = queues
}
criterion_main!(benches);
