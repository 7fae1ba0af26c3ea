//! Measures a join: from the zone through supervisor and key actor and back.
//!
//! It should take less than a microsecond on one worker. It includes the metrics that the gateway
//! records, and runs on one thread, as in a worker.

#[allow(dead_code, reason = "other benches use the rest")]
#[path = "support/measure.rs"]
mod measure;

use std::future::Future;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use actix_rt::{Arbiter, System, SystemRunner};
use gateway::zone::{Join, Key, Zone};
use limit::{Cost, Delay, Limit, Moment};

use measure::{Bench, now};

const GATEWAY: &str = r#"
[origins.app]
servers = ["http://127.0.0.1:9000"]

[zones.open]
key = "$remote_addr"
rate = "1000000r/s"

[zones.shut]
key = "$remote_addr"
rate = "1r/d"

[[routes]]
path = "/"
origin = "app"
"#;

const PASS: Limit = Limit {
    burst: u32::MAX,
    delay: Delay::Never,
    max_wait: None,
    cost: Cost::ONE,
    in_flight: None,
    above_burst: 0,
};
const WAIT: Limit = Limit {
    delay: Delay::Above(0),
    ..PASS
};
const REFUSE: Limit = Limit { burst: 0, ..WAIT };

/// Returns a zone of [`GATEWAY`], with its supervisor on this thread.
fn zone(system: &SystemRunner, name: &str) -> Arc<Zone> {
    let settings = config::parse(GATEWAY, Path::new(""), false).expect("a gateway.toml");
    let found = settings.zones.into_iter().find(|zone| zone.name == name);
    let found = found.expect("a zone of this name");
    system.block_on(async {
        Arc::new(Zone::start(
            found,
            &[Arbiter::current()],
            Moment::default(),
            None,
            Arc::default(),
            Arc::default(),
        ))
    })
}

/// Runs the measured future `times` times on the actors' own thread.
fn time<F: Future>(system: &SystemRunner, times: u64, mut once: impl FnMut() -> F) -> Duration {
    system.block_on(async {
        let began = now();
        for _ in 0..times {
            black_box(once().await);
        }
        now().saturating_sub(began)
    })
}

fn keys(count: usize) -> Vec<Key> {
    let keys = 0..count;
    keys.map(|key| Key::from(key.to_string().as_bytes()))
        .collect()
}

fn joins(bench: &Bench) {
    let system = System::new();
    system
        .block_on(async { gateway::status::Recorder::install() })
        .expect("nothing else records");
    let (open, shut) = (zone(&system, "open"), zone(&system, "shut"));

    for count in [1, 1000] {
        let keys = keys(count);
        let mut next = keys.iter().cycle();
        bench.custom(&format!("join to turn, keys: {count}"), |times| {
            time(&system, times, || {
                let key = next.next().cloned().expect("a key");
                let joining = open.join(Join::new(key, None, PASS));
                async { joining.await.map(gateway::zone::ZoneAdmission::take) }
            })
        });
    }

    let key = Key::from(&b"refused"[..]);
    bench.custom("join to rejection", |times| {
        time(&system, times, || {
            shut.join(Join::new(Key::clone(&key), None, REFUSE))
        })
    });

    let key = Key::from(&b"leaves"[..]);
    // The first request passes, so all others wait.
    let first = shut.join(Join::new(Key::clone(&key), None, WAIT));
    system.block_on(async { first.await.map(gateway::zone::ZoneAdmission::take).ok() });
    bench.custom("join to the queue, and leave it", |times| {
        time(&system, times, || {
            let joining = shut.join(Join::new(Key::clone(&key), None, WAIT));
            async {
                // The request is in the queue now.
                tokio::task::yield_now().await;
                drop(joining);
                tokio::task::yield_now().await;
            }
        })
    });

    // Many joins at once, as in a busy worker: the actors find more than one message.
    let key = Key::from(&b"crowded"[..]);
    bench.custom("64 joins at once to 64 turns", |times| {
        time(&system, times, || {
            let joining: Vec<_> = (0..64)
                .map(|_| open.join(Join::new(Key::clone(&key), None, PASS)))
                .collect();
            async {
                for joining in joining {
                    black_box(joining.await.map(gateway::zone::ZoneAdmission::take).ok());
                }
            }
        })
    });
}

fn main() {
    let bench = Bench::from_arguments();
    joins(&bench);
}
