//! Scenarios in which fewer requests in flight make an origin faster, or do not.

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
        takes: |number| {
            ms(if number / 100 == 0 || number >= 1800 {
                50
            } else {
                3000
            })
        },
        ..Scenario::default()
    }
}

fn limits(it: &Record) -> Vec<(u64, Option<usize>)> {
    let of = |(at, _, limit): &(Duration, f64, Option<usize>)| (at.as_secs(), *limit);
    it.states.iter().map(of).collect()
}

#[test]
fn cuts_that_make_no_answer_faster_are_undone() {
    for seed in some_of(&SEEDS, 1) {
        let it = run(delayed(seed));
        // 40 permits allow 13.3 requests a second.
        let good = it.good(10, 90);
        println!("{seed:?}: {good:.1}/s, {:?}", limits(&it));
        assert!(good >= 0.8 * 13.3, "{good}");
        let least = it.states.iter().filter_map(|(_, _, limit)| *limit).min();
        assert!(least >= Some(5), "three cuts: {least:?}");
        let in_the_end = it.states.last().map(|(_, _, limit)| *limit);
        assert_eq!(in_the_end, Some(Some(40)), "{seed:?}");
        assert!(it.good(150, 200) >= 0.9 * 20.0);
    }
}

#[test]
fn an_unhelpful_cut_is_repeated_half_as_often_each_time() {
    let it = run(Scenario {
        seconds: 1000,
        takes: |number| ms(if number > 100 { 3000 } else { 50 }),
        ..delayed(None)
    });
    let full = it.states.iter().filter(|(_, _, limit)| *limit == Some(40));
    let full: Vec<_> = full.map(|(at, ..)| at.as_secs()).collect();
    println!("{full:?}");
    let gaps: Vec<_> = full.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // A trial takes about ten seconds.
    for (gap, keep) in gaps.iter().zip([30, 60, 120, 240, 300]) {
        assert!((keep..keep + 15).contains(gap), "{gaps:?}");
    }
    assert!(gaps.len() >= 4, "{gaps:?}");
    assert!(it.good(10, 1000) >= 0.93 * 13.3);
}

#[test]
fn unhelpful_cuts_are_undone_with_irregular_answers() {
    for seed in some_of(&SEEDS, 1) {
        let it = run(Scenario {
            seconds: 300,
            takes: |number| {
                if number > 100 {
                    irregular(number, 3.0)
                } else {
                    ms(50)
                }
            },
            ..delayed(seed)
        });
        let good = it.good(10, 300);
        println!("{seed:?}: {good:.1}/s, {:?}", limits(&it));
        // The four permits that cuts leave allow 1.3 requests a second.
        assert!(good >= 2.0 * 1.33, "{good}");
    }
}

#[test]
fn cuts_are_undone_up_to_the_number_of_workers() {
    // Ten workers, 3 s each: 40 in flight take 12 s. Fewer than ten would leave workers idle.
    let it = run(Scenario {
        seconds: 400,
        workers: 10,
        room: usize::MAX,
        takes: |number| ms(if number > 100 { 3000 } else { 50 }),
        ..delayed(None)
    });
    println!("{:?}", limits(&it));
    let good = it.good(60, 400);
    assert!(good >= 0.8 * 10.0 / 3.0, "{good}");
    assert!(it.percentile(50, 100, 400) <= ms(4500));
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
        each(scenario, |it| {
            let limits = limits(it);
            let during = limits.iter().filter(|(at, _)| (25..60).contains(at));
            let most = during.map(|(_, limit)| limit.unwrap_or(usize::MAX)).max();
            println!("{limits:?}");
            assert!(most <= Some(30), "{most:?}");
        });
    }
}
