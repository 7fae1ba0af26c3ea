//! Tests of thousands of requests on one connection, behind one that waits.

use crate::load::abuse::crowd::One;
use crate::load::abuse::{MB, MORE_DESCRIPTORS};
use crate::support::night::day_or_night;
use crate::support::others::Others;
use crate::support::process::Process;
use crate::support::{Gateway, Origin, SOON, eventually, half_alone, now, one_zone};

const REQUEST: &[u8] = b"GET /?crowd=a HTTP/1.1\r\nHost: a\r\n\r\n";

/// Starts a gateway where the first request with `crowd` passes and further ones wait.
///
/// Requests without `crowd` are not limited.
fn gateway(origin: &Origin) -> Gateway {
    let zone = one_zone(origin, "1r/h", "burst = 2").replace("$arg_key", "$arg_crowd");
    let gateway = Gateway::start(&format!("workers = 2\n{zone}"));
    let mut first = gateway.ask("/?crowd=a");
    assert_eq!(first.answer().status, 200);
    gateway
}

#[test]
fn ten_thousand_pipelined_requests_cost_nothing_and_a_reset_frees_the_slot() {
    let machine = half_alone();
    let origin = Origin::start();
    let gateway = gateway(&origin);
    let process = Process::of(gateway.id());
    let (memory, descriptors) = (process.memory(), process.descriptors());
    let others = Others::start(&gateway);
    let mut one = One::connect(gateway.address(), 0);
    let flood = REQUEST.repeat(10_000);
    let (mut sent, deadline) = (0, now() + SOON / 2);
    // Bytes that the gateway does not read stay in the kernel's buffers, or here.
    while sent < flood.len() && now() < deadline {
        sent += one.send(&flood[sent..]);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    gateway.wait_for_depth(1);
    // The rest only waits.
    drop(machine);
    let load = process.load();
    assert!(load < 0.3, "{load:.2} of a core while the first waits");
    let grown = process.memory().saturating_sub(memory);
    assert!(grown < 8 * MB, "{grown} bytes for those behind the first");
    let depth = gateway.zone("drip_zone_queue_depth");
    assert_eq!(depth, 1, "one connection, one waiter");
    others.check();

    let left = now();
    one.reset();
    gateway.wait_for_depth(0);
    assert!(left.elapsed() < SOON);
    eventually("the connection is closed", || {
        process.descriptors() <= descriptors + MORE_DESCRIPTORS
    });
    let sent = origin.moments("crowd").len();
    assert_eq!(sent, 1, "none of a closed connection is forwarded");
    // Both positions in the queue are free: two more requests wait, and only the third is rejected.
    let waiting = [(); 2].map(|()| gateway.ask("/?crowd=a"));
    gateway.wait_for_depth(2);
    let mut third = gateway.ask("/?crowd=a");
    assert_eq!(third.answer().status, 429);
    drop(waiting);
    gateway.wait_for_depth(0);
}

#[test]
fn many_requests_on_one_connection_are_answered_in_order_while_others_are_served() {
    let count = day_or_night(2000, 10_000);
    let _alone = half_alone();
    let origin = Origin::answering(|exchange| {
        let target = exchange.target().to_owned();
        exchange.reply(target.as_bytes())
    });
    let gateway = gateway(&origin);
    let process = Process::of(gateway.id());
    let memory = process.memory();
    let others = Others::start(&gateway);
    let mut one = One::connect(gateway.address(), 0);
    let mut flood = Vec::new();
    for nth in 0..count {
        flood.extend_from_slice(format!("GET /{nth}! HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
    }
    let (mut sent, mut most) = (0, 0);
    let last = format!("/{}!", count - 1);
    let began = now();
    eventually("the last answer is there", || {
        sent += one.send(&flood[sent..]);
        one.take(usize::MAX);
        most = most.max(process.memory());
        one.got.ends_with(last.as_bytes())
    });
    println!("{count} in {:?}", began.elapsed());
    others.check();
    assert!(most < memory + 8 * MB, "{} bytes more", most - memory);
    let text = String::from_utf8_lossy(&one.got);
    let mut rest = &*text;
    for nth in 0..count {
        let body = format!("\r\n\r\n/{nth}!");
        let Some(at) = rest.find(&body) else {
            panic!("no answer to request {nth} after the ones before");
        };
        assert!(!rest[..at].contains('!'), "another's answer before {nth}");
        rest = &rest[at + body.len()..];
    }
}
