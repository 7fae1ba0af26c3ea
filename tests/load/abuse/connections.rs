//! Tests of very many idle connections.

use crate::load::abuse::crowd::{One, raise_descriptors};
use crate::load::abuse::{KB, MORE_DESCRIPTORS, open_gateway};
use crate::support::others::Others;
use crate::support::process::Process;
use crate::support::{Origin, alone, eventually};

/// Maximum number of connections. The limit of file descriptors may allow fewer.
const MOST: usize = 20_000;
const SPARE: usize = 500;

const REQUEST: &[u8] = b"GET /unlimited HTTP/1.1\r\nHost: a\r\n\r\n";

/// Share of a core that the connections may take, beyond the load without them.
const LOAD: f64 = 0.05;

/// Waits until the clients that sent a request, one in ten, have their response.
fn answered(crowd: &mut [One]) {
    eventually("all requests are answered", || {
        crowd.iter_mut().step_by(10).all(|one| {
            one.take(usize::MAX);
            one.got.ends_with(b"ok")
        })
    });
}

#[test]
#[ignore = "minutes: tests/run.sh long"]
fn twenty_thousand_idle_connections_cost_little_memory_and_no_time() {
    let _alone = alone();
    let count = MOST.min(raise_descriptors().saturating_sub(SPARE));
    let origin = Origin::start();
    let gateway = open_gateway(&origin, "header_timeout = \"120s\"\nkeep_alive = \"120s\"");
    let process = Process::of(gateway.id());
    let others = Others::start(&gateway);
    let (descriptors, memory) = (process.descriptors(), process.memory());
    let without = process.load().max(process.load());

    let mut crowd = Vec::with_capacity(count);
    for nth in 0..count {
        let mut one = One::connect(gateway.address(), nth);
        // One in ten was served before.
        if nth % 10 == 0 {
            assert_eq!(one.send(REQUEST), REQUEST.len());
        }
        crowd.push(one);
        // Each request in flight takes two more descriptors of this process, at the origin, which
        // keeps them.
        if nth % 500 == 499 {
            answered(&mut crowd);
        }
    }
    eventually("they are all taken", || process.descriptors() >= count);
    answered(&mut crowd);
    let grown = process.memory().saturating_sub(memory);
    let each = grown / u64::try_from(count).expect("few");
    println!("{count} idle connections, {each} bytes each");
    assert!(each < 32 * KB, "{each} bytes for an idle connection");
    // The last connections may not have reached their worker yet, and a busy machine is slower at
    // times.
    eventually("they take no time", || {
        let load = process.load();
        println!("{load:.2} of a core, without them {without:.2}");
        load < without + LOAD
    });
    assert!(crowd.iter_mut().all(|one| {
        one.take(1);
        one.ended.is_none()
    }));
    others.check();

    drop(crowd);
    eventually("their descriptors are free again", || {
        process.descriptors() <= descriptors + MORE_DESCRIPTORS
    });
    Others::start(&gateway).check();
}
