//! Tests that keys at ten gateways have the same shares as keys at one, whatever fails.

use rustix::process::Signal;

use crate::programs::redis::Redis;
use crate::redis::shared::grid::keys::{check_equal, four_crowds, keys, target, wait_for_all};
use crate::redis::shared::grid::{
    Crowd, busy, check_rate, file, gauge, millis, pass, shared, unevenness, within,
};
use crate::support::{Gateway, Origin, best_of_three, eventually, half_alone};

/// Returns Jain's fairness index: 1 if all counts are equal.
#[allow(clippy::cast_precision_loss)]
fn jain(counts: &[f64]) -> f64 {
    let (sum, squares) = counts.iter().fold((0.0, 0.0), |(sum, squares), count| {
        (sum + count, squares + count * count)
    });
    sum * sum / (counts.len() as f64 * squares)
}

#[test]
fn keys_that_come_by_ten_gateways_have_what_those_have_that_come_by_one() {
    let _machine = half_alone();
    let (origin, redis) = (Origin::start(), Redis::start());
    let text = file(&origin, &redis.url(), &shared("400r/s")).replace("workers = 2", "workers = 1");
    let gateways = [(); 10].map(|()| Gateway::start(&text));
    wait_for_all(&gateways);
    let of_all: Vec<String> = (0..20).map(|nth| format!("key=all{nth}")).collect();
    let of_one: Vec<String> = (0..20).map(|nth| format!("key=one{nth}")).collect();
    best_of_three(|_| {
        let mut crowds = Vec::new();
        for gateway in &gateways {
            crowds.extend(of_all.iter().map(|key| Crowd::of(gateway, &target(key), 2)));
        }
        for (nth, key) in of_one.iter().enumerate() {
            crowds.push(Crowd::of(&gateways[nth / 2], &target(key), 4));
        }
        let span = busy(&crowds, || {
            pass(millis(2500));
            pass(millis(10_000))
        });
        let keys = [&of_all[..], &of_one[..]].concat();
        let counts = check_equal(&origin, &keys, span, 0.1)?;
        let moments = within(&origin, "key=", span);
        let (index, uneven) = (jain(&counts), unevenness(&moments));
        println!("{counts:?}, Jain's index {index:.4}, {uneven:.3}");
        if index < 0.99 {
            return Err(format!("Jain's index is {index:.4}"));
        }
        check_rate(&moments, span, 400.0)
    });
}

#[test]
fn a_lone_key_that_comes_by_ten_gateways_has_the_whole_rate() {
    let _machine = half_alone();
    let (origin, redis) = (Origin::start(), Redis::start());
    let text = file(&origin, &redis.url(), &shared("200r/s")).replace("workers = 2", "workers = 1");
    let gateways = [(); 10].map(|()| Gateway::start(&text));
    wait_for_all(&gateways);
    best_of_three(|_| {
        let crowds: Vec<Crowd> = gateways
            .iter()
            .map(|gateway| Crowd::of(gateway, &target("key=a"), 6))
            .collect();
        let span = busy(&crowds, || {
            pass(millis(700));
            pass(millis(3000))
        });
        check_rate(&within(&origin, "key=a&", span), span, 200.0)
    });
}

/// Shares of keys are correct again one second after a failure.
///
/// A gateway is killed, Redis loses its data, or Redis is out for a while.
#[test]
fn keys_count_right_again_a_second_after_whatever_failed() {
    let _machine = half_alone();
    best_of_three(|_| {
        let (origin, mut redis) = (Origin::start(), Redis::start());
        let text = file(&origin, &redis.url(), &shared("200r/s"));
        let gateways = [Gateway::start(&text), Gateway::start(&text)];
        let third = Gateway::start(&text);
        let mut crowds = four_crowds(&gateways[0], &gateways[1])
            .into_iter()
            .collect::<Vec<_>>();
        crowds.push(Crowd::of(&third, &target("key=both"), 8));
        crowds.push(Crowd::of(&third, &target("key=b"), 8));
        let spans = busy(&crowds, || {
            pass(millis(1000));
            let before = pass(millis(3000));
            third.signal(Signal::KILL);
            pass(millis(1000));
            let killed = pass(millis(3000));
            redis.ask("FLUSHALL");
            pass(millis(1000));
            let flushed = pass(millis(3000));
            redis.kill();
            pass(millis(1000));
            redis.restart();
            eventually("they share again", || {
                let shares = |it| gauge(it, "drip_origin_shared") == Some(1.0);
                gateways.iter().all(shares)
            });
            pass(millis(1000));
            [before, killed, flushed, pass(millis(3000))]
        });
        let keys = keys(&["both", "a", "b", "c"]);
        for (span, what) in spans
            .into_iter()
            .zip(["before", "killed", "flushed", "back"])
        {
            let counts = check_equal(&origin, &keys, span, 0.06);
            let counts = counts.map_err(|error| format!("{what}: {error}"))?;
            println!("{what}: {counts:?}");
            check_rate(&within(&origin, "key=", span), span, 200.0)
                .map_err(|error| format!("{what}: {error}"))?;
        }
        Ok(())
    });
}
