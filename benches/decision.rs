//! Measures a decision, which should take less than 20 ns, and a lookup in many networks.

#[allow(dead_code, reason = "other benches use the rest")]
#[path = "support/measure.rs"]
mod measure;

use std::net::Ipv4Addr;
use std::time::Duration;

use config::{ClientNetworks, Networks};
use ipnet::IpNet;
use limit::{Bucket, Cost, Delay, Limit, Moment, Rate};
use measure::Bench;

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

fn decisions(bench: &Bench) {
    let cases = [
        ("pass", limit(u32::MAX, Delay::Never)),
        ("delay", limit(u32::MAX, Delay::Above(0))),
        ("reject", limit(0, Delay::Above(0))),
    ];
    for (name, limit) in cases {
        let (mut bucket, mut now) = (Bucket::new(), START);
        let rate: Rate = "1000r/s".parse().expect("a rate");
        bench.time(&format!("decide: {name}"), || {
            now = now + Duration::from_nanos(10);
            bucket.decide(rate, limit, now)
        });
    }
}

/// Measures an access check with 100,000 networks. It should take less than 200 ns.
fn networks(bench: &Bench) {
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
    bench.time("client of 100,000 networks", || {
        address = address.wrapping_mul(0x0019_660D).wrapping_add(0x3C6E_F35F);
        networks.serves(Some(Ipv4Addr::from_bits(address).into()))
    });
}

fn main() {
    let bench = Bench::from_arguments();
    decisions(&bench);
    networks(&bench);
}
