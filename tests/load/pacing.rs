//! The pace, as the origin sees it.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{
    Answer, Client, Gateway, MS, Origin, alone, best_of_three, check_gaps, fetch, gaps, now,
    one_zone, quarter_alone,
};

/// Sends `count` requests for `target` at once, each on a connection of its own.
fn at_once(gateway: &Gateway, count: usize, target: &str) -> Vec<Answer> {
    let mut clients: Vec<_> = (0..count)
        .map(|_| Client::connect(gateway.address()))
        .collect();
    for client in &mut clients {
        client.get(target);
    }
    clients.iter_mut().map(Client::answer).collect()
}

fn count_status(answers: &[Answer], status: u16) -> usize {
    answers
        .iter()
        .filter(|answer| answer.status == status)
        .count()
}

/// Fails unless the times, counted from the first, are as `wanted`, in milliseconds.
fn check_departures(moments: &[Instant], wanted: &[u64], slack: Duration) -> Result<(), String> {
    let found: Vec<_> = moments.iter().map(|moment| *moment - moments[0]).collect();
    let is_right = |(found, wanted): (&Duration, &u64)| {
        found.abs_diff(Duration::from_millis(*wanted)) <= slack
    };
    if found.len() == wanted.len() && found.iter().zip(wanted).all(is_right) {
        Ok(())
    } else {
        Err(format!("departures at {found:?}, not at {wanted:?} ms"))
    }
}

/// Sends `count` requests at once and compares the departures, in milliseconds, and how many were rejected.
fn check_vector(rate: &str, limit: &str, count: usize, departures: &[u64], rejected: usize) {
    let _alone = quarter_alone();
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, rate, limit));
    best_of_three(|attempt| {
        let target = format!("/?key={attempt}");
        let answers = at_once(&gateway, count, &target);
        assert_eq!(count_status(&answers, 429), rejected);
        assert_eq!(count_status(&answers, 200), count - rejected);
        // Requests that did not have to wait left at once.
        check_departures(&origin.moments(&target), departures, 15 * MS)
    });
}

/// Keeps 64 requests at the gateway for `span`, and returns when they reached the origin.
fn saturate(gateway: &Gateway, origin: &Origin, target: &str, span: Duration) -> Vec<Instant> {
    const CLIENTS: usize = 64;
    let ready = Barrier::new(CLIENTS);
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = Client::connect(gateway.address());
                ready.wait();
                let end = now() + span;
                while now() < end {
                    client.get(target);
                    assert_eq!(client.answer().status, 200);
                }
            });
        }
    });
    // The very first also open the connections to the origin.
    origin.moments(target).split_off(20)
}

fn check_mean(moments: &[Instant], wanted: f64) -> Result<(), String> {
    let spans = u32::try_from(moments.len() - 1).expect("not that many");
    let mean = f64::from(spans) / (moments[moments.len() - 1] - moments[0]).as_secs_f64();
    if (mean / wanted - 1.0).abs() < 0.005 {
        Ok(())
    } else {
        Err(format!("{mean} requests a second, not {wanted}"))
    }
}

#[test]
fn thirty_requests_at_once_reach_the_origin_one_every_50_ms() {
    let _alone = alone();
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "20r/s", "burst = 30"));
    best_of_three(|attempt| {
        let target = format!("/?key={attempt}");
        let began = now();
        let answers = at_once(&gateway, 30, &target);
        assert_eq!(count_status(&answers, 200), 30);
        let moments = origin.moments(&target);
        assert_eq!(moments.len(), 30);
        let first = moments[0] - began;
        if first > 40 * MS {
            return Err(format!("the first waited {first:?}"));
        }
        check_gaps(&moments, 50 * MS, 3 * MS)
    });
}

#[test]
#[ignore = "64 clients need the machine for themselves: tests/run.sh long"]
fn a_saturated_key_of_2000_a_second_gets_just_that() {
    let _alone = alone();
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "2000r/s", "burst = 100"));
    best_of_three(|attempt| {
        let target = format!("/?key={attempt}");
        check_mean(&saturate(&gateway, &origin, &target, 1000 * MS), 2000.0)
    });
}

/// The share of gaps that are near half a millisecond.
fn share_of_even(moments: &[Instant]) -> f64 {
    let gaps = gaps(moments);
    let is_even = |gap: &&Duration| gap.abs_diff(MS / 2) < MS / 4;
    let even = u32::try_from(gaps.iter().filter(is_even).count()).expect("not that many");
    f64::from(even) / f64::from(u32::try_from(gaps.len()).expect("not that many"))
}

/// Does the work beside a thread that wakes each half millisecond. Returns its share of even gaps, too: what the
/// machine grants at this moment.
fn beside_a_bare_thread<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let waking = scope.spawn(|| {
            let (began, mut woken) = (now(), Vec::new());
            while !done.load(Ordering::Relaxed) {
                let nth = u32::try_from(woken.len()).expect("not that many");
                let due = began + (nth + 1) * (MS / 2);
                thread::sleep(due.saturating_duration_since(now()));
                woken.push(now());
            }
            share_of_even(&woken)
        });
        let worked = work();
        done.store(true, Ordering::Relaxed);
        (worked, waking.join().expect("no panic"))
    })
}

#[test]
#[ignore = "loads both cores: tests/run.sh long"]
fn two_thousand_a_second_come_evenly_and_not_in_clumps() {
    const QUEUED: usize = 800;
    let _alone = alone();
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "2000r/s", "burst = 800"));
    best_of_three(|attempt| {
        let target = format!("/?key={attempt}");
        let (answers, floor) = beside_a_bare_thread(|| at_once(&gateway, QUEUED, &target));
        assert_eq!(count_status(&answers, 200), QUEUED);
        // By now all have joined, and only the timer releases them: a request that joins also releases those that
        // are due, and would hide how coarse the timer is.
        let moments = origin.moments(&target).split_off(QUEUED / 2);
        // A clock of 1 ms releases two together: every other gap would be almost zero.
        let even = share_of_even(&moments);
        if floor < 0.95 {
            // The machine is busy: a bare thread is uneven too, and it has no request to serve. Where gateway, origin
            // and clients share what other programs leave, a tenth was seen. A clock of 1 ms would have none even.
            let least = 0.05;
            let told =
                format!("{even} of the gaps are near 0.5 ms, and {floor} of a bare thread's");
            return if even >= least { Ok(()) } else { Err(told) };
        }
        let gaps = gaps(&moments);
        let tight = gaps.iter().filter(|gap| **gap < MS / 10).count();
        if tight * 10 >= gaps.len() {
            return Err(format!("{tight} of {} gaps are below 0.1 ms", gaps.len()));
        }
        if even < 0.9 {
            return Err(format!("{even} of the gaps are near 0.5 ms"));
        }
        // A stall of the machine fills a window or two when the gateway catches up; the pace fills none of the others.
        let mut windows: Vec<usize> = (0..moments.len())
            .map(|from| {
                let within = |at: &&Instant| **at - moments[from] < 10 * MS;
                moments[from..].iter().take_while(within).count()
            })
            .collect();
        windows.sort_unstable();
        let busy = windows[windows.len() * 95 / 100];
        if busy > 25 {
            return Err(format!(
                "one in twenty windows of 10 ms holds {busy} requests, where 20 are due"
            ));
        }
        Ok(())
    });
}

#[test]
fn two_a_second_with_burst_5_space_five_and_reject_two() {
    check_vector("2r/s", "burst = 5", 8, &[0, 500, 1000, 1500, 2000, 2500], 2);
}

#[test]
fn ten_a_second_with_burst_20_and_delay_8_pass_nine_space_twelve_and_reject_one() {
    let mut departures = vec![0; 9];
    departures.extend((1..=12).map(|nth| nth * 100));
    check_vector("10r/s", "burst = 20, delay = 8", 22, &departures, 1);
}

#[test]
fn thirty_a_minute_with_burst_2_and_delay_1_pass_two_and_delay_one_by_two_seconds() {
    let _alone = quarter_alone();
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "30r/m", "burst = 2, delay = 1"));
    best_of_three(|attempt| {
        let target = format!("/?key={attempt}");
        let mut clients: Vec<_> = (0..3)
            .map(|_| Client::ask(gateway.address(), &target))
            .collect();
        // Part of the vector: the fourth comes 0.2 s after the others.
        thread::sleep(200 * MS);
        assert_eq!(fetch(gateway.address(), &target).status, 429);
        assert!(
            clients
                .iter_mut()
                .all(|client| client.answer().status == 200)
        );
        check_departures(&origin.moments(&target), &[0, 0, 2000], 15 * MS)
    });
}

#[test]
fn what_need_not_wait_passes_at_once_and_the_rest_is_rejected() {
    check_vector("1r/s", "burst = 2, nodelay = true", 5, &[0, 0, 0], 2);
    // An excess that is equal to `delay`.
    check_vector("2r/s", "burst = 3, delay = 3", 5, &[0, 0, 0, 0], 1);
}
