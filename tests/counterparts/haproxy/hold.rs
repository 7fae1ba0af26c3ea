//! Tests of a server that is killed and restarted, and of its requests, beside haproxy.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use super::killed::KilledServer;
use crate::programs::haproxy::Haproxy;
use crate::support::hold::held;
use crate::support::{Client, Gateway, MS, best_of_three, half_alone};

/// Sends requests at this interval. Returns the statuses; 0 means no response.
fn load(to: SocketAddr, name: &str, requests: usize, apart: Duration) -> Vec<u16> {
    let mut answers = Vec::new();
    for nth in 0..requests {
        let client = Client::ask(to, &format!("/{name}/{nth}?key={}", nth % 3));
        answers.push(thread::spawn(move || {
            let mut client = client;
            client.try_answer().map_or(0, |answer| answer.status)
        }));
        thread::sleep(apart);
    }
    let statuses = answers.into_iter().map(|it| it.join().expect("no panic"));
    statuses.collect()
}

fn failed(statuses: &[u16]) -> usize {
    statuses.iter().filter(|status| **status != 200).count()
}

#[test]
fn a_restart_of_a_second_costs_no_request_and_no_burst_follows() {
    const LOADS: [&str; 3] = ["hold", "no_hold", "haproxy"];
    let _alone = half_alone();
    best_of_three(|attempt| {
        let mut server = KilledServer::start();
        let pace = "rate = \"40r/s\"\nqueue_timeout = \"10s\"\n";
        let fields = format!("{pace}hold = \"10s\"");
        let with_hold = Gateway::start(&held(&[server.address], &fields, ""));
        let without = Gateway::start(&held(&[server.address], pace, ""));
        let haproxy = Haproxy::before(server.address, "    retries 3\n");
        let to = [with_hold.address(), without.address(), haproxy.address];
        let loads = std::iter::zip(to, LOADS);
        let running: Vec<_> = loads
            .map(|(to, name)| thread::spawn(move || load(to, name, 60, 50 * MS)))
            .collect();
        thread::sleep(700 * MS);
        server.kill();
        thread::sleep(1000 * MS);
        server.start_again();
        let answers = running.into_iter().map(|it| it.join().expect("no panic"));
        let lost: Vec<usize> = answers.map(|it| failed(&it)).collect();
        eprintln!("attempt {attempt}: of 60 requests failed: {LOADS:?} {lost:?}");
        assert_eq!(lost[0], 0, "with hold");
        assert!(lost[1] >= 10, "without hold: {lost:?}");
        let stamps = server.stamps("/hold/");
        assert_eq!(stamps.len(), 60, "each arrived, and once");
        in_order_and_paced(&stamps)
    });
}

/// Fails unless each key is in order, and no two stamps are closer than the pace allows.
fn in_order_and_paced(stamps: &[(u64, String)]) -> Result<(), String> {
    let number = |target: &str| target[6..].split('?').next()?.parse::<usize>().ok();
    for key in ["key=0", "key=1", "key=2"] {
        let of_key = stamps.iter().filter(|(_, target)| target.ends_with(key));
        let numbers: Vec<_> = of_key.filter_map(|(_, target)| number(target)).collect();
        if !numbers.is_sorted() {
            return Err(format!("{key} left as {numbers:?}"));
        }
    }
    // Requests arrive every 50 ms, and those that had to wait leave every 25 ms.
    let gaps: Vec<u64> = stamps.windows(2).map(|two| two[1].0 - two[0].0).collect();
    let paced = gaps.iter().filter(|gap| (15..=35).contains(*gap)).count();
    if gaps.iter().any(|gap| *gap < 15) || paced < 15 {
        return Err(format!("the gaps are {gaps:?}"));
    }
    Ok(())
}
