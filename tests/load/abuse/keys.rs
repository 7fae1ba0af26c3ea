//! Floods of new keys, and of one key.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::load::abuse::crowd::{One, raise_descriptors};
use crate::load::abuse::{KB, MB, MORE_DESCRIPTORS};
use crate::support::others::Others;
use crate::support::process::Process;
use crate::support::{
    Client, Gateway, Origin, SOON, eventually, free_address, half_alone, now, one_zone,
};

/// Sends a request for each key, `at_once` at a time, and reads the responses; returns how many were not `status`.
fn ask_for_each(
    to: SocketAddr,
    keys: impl Iterator<Item = usize>,
    at_once: usize,
    status: u16,
) -> usize {
    let mut client = Client::connect(to);
    let keys: Vec<usize> = keys.collect();
    let mut others = 0;
    for some in keys.chunks(at_once) {
        let mut requests = Vec::new();
        for key in some {
            write!(requests, "GET /flood?key={key} HTTP/1.1\r\nHost: a\r\n\r\n").expect("memory");
        }
        client.send(&requests);
        others += some
            .iter()
            .filter(|_| client.answer().status != status)
            .count();
    }
    others
}

#[test]
#[ignore = "minutes: tests/run.sh long"]
fn a_hundred_thousand_keys_take_the_memory_of_max_keys() {
    const KEYS: usize = 100_000;
    const MAX_KEYS: i64 = 1000;
    const THREADS: usize = 4;
    let _alone = half_alone();
    let origin = Origin::start();
    let zone = one_zone(&origin, "1000r/s", "burst = 1000").replace(
        "key = \"$arg_key\"",
        &format!("key = \"$arg_key\"\nmax_keys = {MAX_KEYS}"),
    );
    // Nothing listens there: a request of the flood is cheap to refuse.
    let flooded = format!(
        "[origins.none]\nservers = [\"http://{}\"]\n\n[[routes]]\npath = \"/flood\"\norigin = \"none\"\n\
         limits = [{{ zone = \"z\", burst = 1000 }}]\n",
        free_address()
    );
    let gateway = Gateway::start(&format!("workers = 2\n{zone}\n{flooded}"));
    let process = Process::of(gateway.id());
    assert_eq!(ask_for_each(gateway.address(), 0..1000, 20, 502), 0);
    let memory = process.memory();
    let others = Others::start(&gateway);

    let began = now();
    let over = AtomicBool::new(false);
    let most_keys = thread::scope(|scope| {
        let floods: Vec<_> = (0..THREADS)
            .map(|nth| {
                let keys = (1000 + nth..1000 + KEYS).step_by(THREADS);
                let to = gateway.address();
                scope.spawn(move || ask_for_each(to, keys, 20, 502))
            })
            .collect();
        let watching = scope.spawn(|| {
            let mut most = 0;
            while !over.load(Ordering::SeqCst) {
                most = most.max(gateway.zone("drip_zone_keys"));
                thread::sleep(Duration::from_millis(50));
            }
            most
        });
        let odd: usize = floods
            .into_iter()
            .map(|flood| flood.join().expect("no panic"))
            .sum();
        over.store(true, Ordering::SeqCst);
        assert_eq!(odd, 0, "each of the flood is answered alike");
        watching.join().expect("no panic")
    });
    println!("{KEYS} keys in {:?}", began.elapsed());
    assert!(most_keys > 0 && most_keys <= MAX_KEYS, "{most_keys} keys");
    let grown = process.memory().saturating_sub(memory);
    assert!(grown < 24 * MB, "{} KB more after the flood", grown / KB);
    others.check();
}

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
    let steady = thread::spawn({
        let to = gateway.address();
        // Requests of another key wait for their own turns: five at once leave 50 ms apart, each time.
        move || {
            for _ in 0..4 {
                let began = now();
                let mut clients: Vec<_> = (0..5).map(|_| Client::ask(to, "/?key=five")).collect();
                for client in &mut clients {
                    assert_eq!(client.answer().status, 200);
                }
                let took = began.elapsed();
                assert!(
                    took > Duration::from_millis(150) && took < Duration::from_secs(1),
                    "five in a row took {took:?}"
                );
                thread::sleep(Duration::from_millis(300));
            }
        }
    });
    let began = now();
    let end = began + Duration::from_secs(3);
    let floods: Vec<_> = (0..50)
        .map(|_| {
            let to = gateway.address();
            thread::spawn(move || {
                let mut client = Client::connect(to);
                let mut statuses = [0, 0];
                while now() < end {
                    client.get("/?key=hot");
                    match client.answer().status {
                        200 => statuses[0] += 1,
                        429 => statuses[1] += 1,
                        odd => panic!("{odd}"),
                    }
                }
                statuses
            })
        })
        .collect();
    let mut statuses = [0, 0];
    for flood in floods {
        let [passed, rejected] = flood.join().expect("no panic");
        statuses = [statuses[0] + passed, statuses[1] + rejected];
    }
    println!("{} passed, {} rejected", statuses[0], statuses[1]);
    steady.join().expect("the others' pace");
    others.check();
    let moments = origin.moments("key=hot");
    let last = moments.last().expect("some of the flood has passed");
    // Measured from before the first was sent: it may reach the origin late while the others do not.
    let most = (*last - began).as_secs_f64() * f64::from(RATE) + 2.0;
    let passed = u32::try_from(moments.len()).expect("few");
    assert!(f64::from(passed) <= most, "{passed} passed, not {most}");
    assert!(statuses[1] > 100, "a flood");
    let grown = process.memory().saturating_sub(memory);
    assert!(grown < 24 * MB, "{} KB more after the flood", grown / KB);
}

#[test]
fn a_thousand_who_wait_at_one_key_give_all_their_places_back() {
    const WAITING: usize = 1000;
    let _alone = half_alone();
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
