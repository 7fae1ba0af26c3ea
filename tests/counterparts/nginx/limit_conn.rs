//! Compares `in_flight` without a burst with nginx's `limit_conn`: same verdicts.

use std::net::{SocketAddr, TcpStream};

use crate::programs::nginx::Nginx;
use crate::support::rng::Rng;
use crate::support::start_drip;
use crate::support::{Client, HoldingOrigin, eventually};

const MOST: usize = 3;
const KEYS: [&str; 3] = ["a", "b", "c"];
const STEPS: u64 = 120;

/// Next step of a client.
#[derive(Clone, Debug)]
enum Step {
    /// Sends a request of this target.
    Ask(String),
    /// Ends the running request at this index.
    End(usize),
}

fn steps(seed: u64) -> Vec<Step> {
    let mut rng = Rng::of(seed, 0);
    let mut step = |nth| {
        if rng.percent(60) {
            let key = rng.pick(&KEYS);
            let path = rng.pick(&["/a/", "/b/"]);
            Step::Ask(format!("{path}{nth}?key={key}"))
        } else {
            let index = rng.within(0, 6);
            Step::End(usize::try_from(index).expect("small"))
        }
    };
    (0..STEPS).map(&mut step).collect()
}

/// Returns which requests were admitted, in the order of the steps.
///
/// A permit is freed just after the client has its response. `settle` waits until as many permits
/// are in use as requests run.
fn verdicts(
    gateway: SocketAddr,
    held: &HoldingOrigin,
    steps: &[Step],
    settle: impl Fn(usize),
) -> Vec<(String, bool)> {
    let (mut running, mut verdicts): (Vec<(String, Client)>, _) = (Vec::new(), Vec::new());
    let mut arrived = held.targets().len();
    for step in steps {
        match step {
            Step::Ask(target) => {
                let client = Client::ask(gateway, target);
                let passed = passes(held, arrived, target, client);
                arrived += usize::from(passed.is_some());
                verdicts.push((target.clone(), passed.is_some()));
                running.extend(passed.map(|client| (target.clone(), client)));
            }
            Step::End(index) if *index < running.len() => {
                let (target, mut client) = running.remove(*index);
                held.release(&target);
                assert_eq!(client.answer().status, 200);
                settle(running.len());
            }
            Step::End(_) => {}
        }
    }
    for (target, mut client) in running {
        held.release(&target);
        assert_eq!(client.answer().status, 200);
    }
    verdicts
}

/// Returns the client if its request reaches the origin; `None` if it is refused.
fn passes(held: &HoldingOrigin, arrived: usize, target: &str, client: Client) -> Option<Client> {
    let stream = client.sender();
    let mut has_arrived = false;
    eventually("it has arrived or is refused", || {
        has_arrived = held.targets().len() > arrived;
        has_arrived || has_bytes(&stream)
    });
    if has_arrived {
        return Some(client);
    }
    let mut client = client;
    assert_eq!(client.answer().status, 503, "{target}");
    None
}

/// Returns whether a response has begun.
fn has_bytes(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).expect("a socket");
    let read = stream.peek(&mut [0]);
    stream.set_nonblocking(false).expect("a socket");
    read.is_ok_and(|count| count > 0)
}

#[test]
fn nginx_and_drip_refuse_the_same_of_the_same_arrivals() {
    let zone = "[zones.conn]\nkey = \"$arg_key\"\nrate = \"none\"\n";
    let limit = format!(
        "reject_status = 503\nlimits = [{{ zone = \"conn\", burst = 0, in_flight = {MOST} }}]"
    );
    let seed = u64::from(std::process::id());
    let steps = steps(seed);
    let (of_nginx, of_drip) = (HoldingOrigin::start(), HoldingOrigin::start());
    let http = "limit_conn_zone $arg_key zone=conn:1m;";
    let conn = format!("limit_conn conn {MOST};");
    let nginx = Nginx::start(&of_nginx.origin, http, &[("/a/", &conn), ("/b/", &conn)]);
    let drip = start_drip(&of_drip.origin, zone, &[("/a/", &limit), ("/b/", &limit)]);
    // nginx's only worker ends a request before it takes the next one.
    let expected = verdicts(nginx.address, &of_nginx, &steps, |_| {});
    let taken = || drip.count("drip_zone_in_flight", &[("zone", "conn")]);
    let found = verdicts(drip.address(), &of_drip, &steps, |running| {
        eventually("its permit is free", || {
            usize::try_from(taken()) == Ok(running)
        });
    });
    let refused = expected.iter().filter(|(_, passed)| !passed).count();
    assert_eq!(found, expected, "seed {seed}");
    let are_some = refused > 0 && refused < expected.len();
    assert!(are_some, "seed {seed}: {refused} refused");
    eventually("all permits are free", || taken() == 0);
    let metrics = drip.metrics();
    let rejected = [("zone", "conn"), ("reason", "in_flight")];
    let counted = metrics.count("drip_zone_rejections_total", &rejected);
    assert_eq!(usize::try_from(counted).expect("a count"), refused);
}
