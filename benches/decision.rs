//! The cost of a decision. It should be less than 20 ns.

#[path = "support/thread_time.rs"]
mod thread_time;

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use drip::limit::{Bucket, Cost, Delay, Limit, Moment, Rate};

use thread_time::ThreadTime;

const START: Moment = Moment::from_nanos(1_700_000_000_000_000_000);

fn limit(burst: u32, delay: Delay) -> Limit {
    Limit {
        burst,
        delay,
        max_wait: None,
        cost: Cost::ONE,
        in_flight: None,
        above_burst: 0,
    }
}

fn decisions(c: &mut Criterion<ThreadTime>) {
    let mut group = c.benchmark_group("decide");
    let cases = [
        ("pass", limit(u32::MAX, Delay::Never)),
        ("delay", limit(u32::MAX, Delay::Above(0))),
        ("reject", limit(0, Delay::Above(0))),
    ];
    for (name, limit) in cases {
        let (mut bucket, mut now) = (Bucket::new(), START);
        let rate: Rate = "1000r/s".parse().expect("a rate");
        group.bench_function(name, |b| {
            b.iter(|| {
                now = now + Duration::from_nanos(10);
                black_box(bucket.decide(rate, limit, now))
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(ThreadTime);
    targets = decisions
}
criterion_main!(benches);
