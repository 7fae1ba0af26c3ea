//! What does a decision cost, and does a deep queue make it dearer?

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use drip::limit::{Bucket, Delay, Limit, Moment, Queue, Rate, Ticket};

const START: Moment = Moment::from_nanos(1_700_000_000_000_000_000);

fn rate(text: &str) -> Rate {
    text.parse().expect("a rate")
}

fn limit(burst: u32, delay: Delay) -> Limit {
    Limit {
        burst,
        delay,
        max_wait: None,
    }
}

fn decisions(c: &mut Criterion) {
    let mut group = c.benchmark_group("decide");
    let cases = [
        ("pass", limit(u32::MAX, Delay::Never)),
        ("delay", limit(u32::MAX, Delay::Above(0))),
        ("reject", limit(0, Delay::Above(0))),
    ];
    for (name, limit) in cases {
        let (mut bucket, mut now) = (Bucket::new(), START);
        let rate = rate("1000r/s");
        group.bench_function(name, |b| {
            b.iter(|| {
                now = now + Duration::from_nanos(10);
                black_box(bucket.decide(rate, limit, now))
            });
        });
    }
    group.finish();
}

fn full(depth: u64) -> Queue<u64> {
    let mut queue = Queue::new(rate("1r/s"), Bucket::new(), START);
    for id in 0..=depth {
        queue.join(limit(u32::MAX, Delay::Above(0)), Ticket(id), START, || id);
    }
    queue
}

fn queues(c: &mut Criterion) {
    for depth in [10, 10_000] {
        let mut group = c.benchmark_group(format!("queue of {depth}"));
        group.bench_function("join and leave", |b| {
            let mut queue = full(depth);
            let ticket = Ticket(depth + 1);
            b.iter(|| {
                queue.join(limit(u32::MAX, Delay::Above(0)), ticket, START, || 0);
                black_box(queue.leave(ticket))
            });
        });
        group.bench_function("leave from the middle", |b| {
            let leave = |mut queue: Queue<u64>| {
                queue.leave(Ticket(depth / 2));
                queue
            };
            b.iter_batched(|| full(depth), leave, BatchSize::LargeInput);
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

criterion_group!(benches, decisions, queues);
criterion_main!(benches);
