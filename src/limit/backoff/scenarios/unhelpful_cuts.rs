//! Scenarios in which fewer requests in flight make an origin faster, or do not.
//!
//! A *cut* lowers the limit of requests in flight, after slow answers. Cuts that make no answer
//! faster are *undone*: the limit is as before, and is not cut for a time that doubles each time.

use super::*;

/// An origin with a worker for each request. Requests 100 to 1799 take 3 s each, the others 50 ms.
fn delayed(seed: Option<u64>) -> Scenario {
    Scenario {
        seconds: 200,
        offered: 20.0,
        seed,
        rate: None,
        max_in_flight: Some(40),
        limits: slow(1000),
        workers: usize::MAX,
        changes: vec![],
        takes: |number| takes((100..1800).contains(&number)),
        ..Scenario::default()
    }
}

/// Returns the service time of a slow request, or of a fast one.
fn takes(is_slow: bool) -> Duration {
    ms(if is_slow { 3000 } else { 50 })
}

/// Returns the limits of requests in flight: second from which one is in force, and limit.
fn limits(record: &Record) -> Vec<(u64, Option<usize>)> {
    let states = record.states.iter();
    states
        .map(|state| (state.at.as_secs(), state.max_in_flight))
        .collect()
}

#[test]
fn cuts_that_make_no_answer_faster_are_undone() {
    for seed in some_of(&SEEDS, 1) {
        let record = run(delayed(seed));
        // 40 permits allow 13.3 requests a second.
        let good = record.good(10, 90);
        println!("{seed:?}: {good:.1}/s, {:?}", limits(&record));
        assert!(good >= 0.8 * 13.3, "{good}");
        assert!(record.least_limit() >= Some(5), "three cuts");
        let in_the_end = record.states.last().map(|state| state.max_in_flight);
        assert_eq!(in_the_end, Some(Some(40)), "{seed:?}");
        assert!(record.good(150, 200) >= 0.9 * 20.0);
    }
}

#[test]
fn an_unhelpful_cut_is_repeated_half_as_often_each_time() {
    let record = run(Scenario {
        seconds: 1000,
        takes: |number| takes(number > 100),
        ..delayed(None)
    });
    let undone = limits(&record)
        .into_iter()
        .filter(|(_, limit)| *limit == Some(40));
    let undone: Vec<_> = undone.map(|(second, _)| second).collect();
    println!("{undone:?}");
    let gaps: Vec<_> = undone.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // A trial takes about ten seconds.
    for (gap, keep) in gaps.iter().zip([30, 60, 120, 240, 300]) {
        assert!((keep..keep + 15).contains(gap), "{gaps:?}");
    }
    assert!(gaps.len() >= 4, "{gaps:?}");
    assert!(record.good(10, 1000) >= 0.93 * 13.3);
}

#[test]
fn unhelpful_cuts_are_undone_with_irregular_answers() {
    for seed in some_of(&SEEDS, 1) {
        let record = run(Scenario {
            seconds: 300,
            takes: |number| match number {
                0..=100 => ms(50),
                _ => irregular(number, 3.0),
            },
            ..delayed(seed)
        });
        let good = record.good(10, 300);
        println!("{seed:?}: {good:.1}/s, {:?}", limits(&record));
        // The four permits that cuts leave allow 1.3 requests a second.
        assert!(good >= 2.0 * 1.33, "{good}");
    }
}

#[test]
fn cuts_are_undone_up_to_the_number_of_workers() {
    // Ten workers, 3 s each: 40 in flight take 12 s. Fewer than ten would leave workers idle.
    let record = run(Scenario {
        seconds: 400,
        workers: 10,
        room: usize::MAX,
        takes: |number| takes(number > 100),
        ..delayed(None)
    });
    println!("{:?}", limits(&record));
    let good = record.good(60, 400);
    assert!(good >= 0.8 * 10.0 / 3.0, "{good}");
    assert!(record.percentile(50, 100, 400) <= ms(4500));
}

#[test]
fn cuts_that_help_are_not_undone_before_the_origin_recovers() {
    for max_in_flight in [Some(50), None] {
        let scenario = || Scenario {
            max_in_flight,
            limits: slow(250),
            room: usize::MAX,
            ..Scenario::default()
        };
        each(scenario, |record| {
            let limits = limits(record);
            let during = limits.iter().filter(|(at, _)| (25..60).contains(at));
            let most = during.map(|(_, limit)| limit.unwrap_or(usize::MAX)).max();
            println!("{limits:?}");
            assert!(most <= Some(30), "{most:?}");
        });
    }
}
