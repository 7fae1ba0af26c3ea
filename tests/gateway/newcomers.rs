//! Keys that nobody has seen come to a gate faster than it lets requests through.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::{Client, Gateway, MS, Origin, eventually, half_alone, now};

const RATE: usize = 100;
/// So many newcomers are there at a time. Each hangs up after a quarter of a second, so together they ask for more than
/// the rate.
const NEWCOMERS: usize = 40;

fn gateway(origin: &Origin) -> Gateway {
    Gateway::start(&format!(
        "[origins.app]\nservers = [\"http://{}\"]\nrate = \"{RATE}r/s\"\nqueue_timeout = \"10s\"\nshare = \"key\"\n\
         [zones.key]\nkey = \"$arg_key\"\nrate = \"1000r/s\"\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n",
        origin.address
    ))
}

/// Asks for `span`, with a pause of 0.2 s behind each answer. Returns how long each answer took.
fn ask(gateway: &Gateway, key: &str, span: Duration) -> Vec<Duration> {
    let mut client = Client::connect(gateway.address());
    let end = now() + span;
    let mut waits = Vec::new();
    while now() < end {
        let began = now();
        client.get(&format!("/?key={key}"));
        assert_eq!(client.answer().status, 200, "{key}");
        waits.push(began.elapsed());
        thread::sleep(200 * MS);
    }
    waits
}

/// Six known clients ask for `span`.
fn known_clients(gateway: &Gateway, span: Duration) -> Vec<Duration> {
    thread::scope(|scope| {
        let asking: Vec<_> = (0..6)
            .map(|nth| scope.spawn(move || ask(gateway, &format!("known{nth}"), span)))
            .collect();
        let waits = asking
            .into_iter()
            .flat_map(|it| it.join().expect("no panic"));
        waits.collect()
    })
}

#[test]
fn known_clients_are_served_beside_ever_new_keys() {
    let _half = half_alone();
    let origin = Origin::start();
    let gateway = gateway(&origin);
    // From now on they are known.
    known_clients(&gateway, 500 * MS);
    let (done, next) = (AtomicBool::new(false), AtomicUsize::new(0));
    let waits = thread::scope(|scope| {
        for _ in 0..NEWCOMERS {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    let key = next.fetch_add(1, Ordering::SeqCst);
                    let _asked = Client::ask(gateway.address(), &format!("/?key=new{key}"));
                    thread::sleep(250 * MS);
                }
            });
        }
        eventually("newcomers wait", || {
            let depth = gateway
                .metrics()
                .count("drip_origin_queue_depth", &[("origin", "app")]);
            depth > 10
        });
        let waits = known_clients(&gateway, 4000 * MS);
        done.store(true, Ordering::SeqCst);
        waits
    });
    let longest = waits.iter().max().expect("they asked");
    println!("{} answers, the longest after {longest:?}", waits.len());
    // One request of each newcomer that waits takes 0.4 s. A key that waits for all that come has none in 10 s.
    assert!(waits.len() >= 30 && *longest < 3000 * MS, "{longest:?}");
    assert!(next.load(Ordering::SeqCst) > 4 * RATE, "there was a flood");
}
