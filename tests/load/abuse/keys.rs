//! Tests of floods of one key.

use std::thread;
use std::time::Duration;

use crate::load::abuse::crowd::{One, raise_descriptors};
use crate::load::abuse::{KB, MB, MORE_DESCRIPTORS};
use crate::support::others::Others;
use crate::support::process::Process;
use crate::support::{Client, Gateway, Origin, SOON, eventually, half_alone, now, one_zone};

#[test]
fn a_flood_on_one_key_leaves_the_others_their_pace() {
    const RATE: u32 = 20;
    let _alone = half_alone();
    let origin = Origin::start();
    let gateway = Gateway::start(&format!(
        "workers = 2\n{}",
        one_zone(&origin, "20r/s", "burst = 40")
    ));
    let process = Process::of(gateway.id());
    let memory = process.memory();
    let others = Others::start(&gateway);
    let began = now();
    let end = began + Duration::from_secs(3);
    let floods: Vec<_> = (0..50)
        .map(|_| {
            let to = gateway.address();
            thread::spawn(move || {
                let mut client = Client::connect(to);
                let mut rejected = 0;
                while now() < end {
                    let status = client.fetch("/?key=hot").status;
                    assert!([200, 429].contains(&status), "{status}");
                    rejected += usize::from(status == 429);
                }
                rejected
            })
        })
        .collect();
    // Requests of another key wait for their own slots: five at once leave 50 ms apart, each time.
    for _ in 0..4 {
        let began = now();
        let mut five = [(); 5].map(|()| gateway.ask("/?key=five"));
        assert!(five.iter_mut().all(|client| client.answer().status == 200));
        let took = began.elapsed();
        let is_paced = took > Duration::from_millis(150) && took < Duration::from_secs(1);
        assert!(is_paced, "five in a row took {took:?}");
        thread::sleep(Duration::from_millis(300));
    }
    let rejected: usize = floods
        .into_iter()
        .map(|it| it.join().expect("no panic"))
        .sum();
    println!("{rejected} rejected");
    others.check();
    let moments = origin.moments("key=hot");
    let last = moments.last().expect("some of the flood has passed");
    // Measured from before the first was sent: it may reach the origin late while the others do
    // not.
    let most = (*last - began).as_secs_f64() * f64::from(RATE) + 2.0;
    let passed = u32::try_from(moments.len()).expect("few");
    assert!(f64::from(passed) <= most, "{passed} passed, not {most}");
    assert!(rejected > 100, "a flood");
    let grown = process.memory().saturating_sub(memory);
    assert!(grown < 24 * MB, "{} KB more after the flood", grown / KB);
}

#[test]
fn a_thousand_waiters_of_one_key_free_all_their_slots() {
    const WAITING: usize = 1000;
    let machine = half_alone();
    raise_descriptors();
    let origin = Origin::start();
    let gateway = Gateway::start(&format!(
        "workers = 2\n{}",
        one_zone(&origin, "1r/s", &format!("burst = {WAITING}")).replace("$arg_key", "$arg_crowd")
    ));
    let process = Process::of(gateway.id());
    let (memory, descriptors) = (process.memory(), process.descriptors());
    let others = Others::start(&gateway);
    let request = b"GET /?crowd=yes HTTP/1.1\r\nHost: a\r\n\r\n";
    let crowd: Vec<_> = (0..WAITING)
        .map(|nth| {
            let mut one = One::connect(gateway.address(), nth);
            assert_eq!(one.send(request), request.len());
            one
        })
        .collect();
    let depth = || gateway.zone("drip_zone_queue_depth");
    let least = i64::try_from(WAITING).expect("few") - 20;
    eventually("they wait", || depth() >= least);
    // The rest only waits.
    drop(machine);
    let load = process.load();
    assert!(load < 0.3, "{load:.2} of a core while they wait");
    let each = process.memory().saturating_sub(memory) / u64::try_from(WAITING).expect("few");
    println!("{each} bytes for each that waits");
    assert!(each < 64 * KB, "{each} bytes for each that waits");
    let began = now();
    drop(crowd);
    gateway.wait_for_depth(0);
    assert!(began.elapsed() < SOON);
    eventually("the connections are closed", || {
        process.descriptors() <= descriptors + MORE_DESCRIPTORS
    });
    others.check();
}
