//! The cost of a decision, which should be less than 20 ns, and of a look at many networks.

#[path = "support/thread_time.rs"]
mod thread_time;

use std::hint::black_box;
use std::net::Ipv4Addr;
use std::time::Duration;

use config::{ClientNetworks, Networks};
use criterion::{Criterion, criterion_group, criterion_main};
use limit::{Bucket, Cost, Delay, Limit, Moment, Rate};

use ipnet::IpNet;
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

/// Whether a client may come, with 100,000 networks: below 200 ns.
fn networks(c: &mut Criterion<ThreadTime>) {
    let network = |nth: u32| {
        let address = Ipv4Addr::from_bits(nth.wrapping_mul(0x9E37_79B1));
        let prefix = 20 + u8::try_from(nth % 13).expect("few");
        IpNet::new(address.into(), prefix)
            .expect("a network")
            .trunc()
    };
    let allow = Networks {
        list: (0..100_000).map(network).collect(),
        file: None,
    };
    let networks = ClientNetworks::new(Some(&allow), None);
    let mut address = 0_u32;
    c.bench_function("client of 100,000 networks", |b| {
        b.iter(|| {
            address = address.wrapping_mul(0x0019_660D).wrapping_add(0x3C6E_F35F);
            black_box(networks.serve(Some(Ipv4Addr::from_bits(address).into())))
        });
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(ThreadTime);
    targets = decisions, networks
}
criterion_main!(benches);
