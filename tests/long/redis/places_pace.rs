//! Tests of shared permits together with a shared rate: a request needs both at once.

use crate::programs::redis::Redis;
use crate::redis::shared::places::{Counting, busy, pass};
use crate::support::{Gateway, best_of_three, eventually, half_alone, now};

/// Returns the departures per second while requests wait at these gateways.
fn left_a_second(app: &Counting, crowds: &[(&Gateway, usize)], takes: u32) -> f64 {
    busy(crowds, &format!("/{takes}"), || {
        eventually("a request leaves", || app.all() > 0);
        pass(1000);
        let (before, began) = (app.all(), now());
        pass(5000);
        #[expect(clippy::cast_precision_loss, reason = "they are few")]
        let left = (app.all() - before) as f64;
        left / began.elapsed().as_secs_f64()
    })
}

/// Checks that the whole rate departs if requests use at most two thirds of the permits.
///
/// Each gateway has three clients. `takes`: duration of a request in milliseconds.
fn the_rate_leaves(places: u32, gateways: u32, rate: u32, takes: u32) {
    best_of_three(|_| {
        let (app, redis) = (Counting::start(), Redis::start());
        let text = app.file(
            &redis,
            &format!("max_in_flight = {places}\nrate = \"{rate}r/s\""),
        );
        let all: Vec<_> = (0..gateways).map(|_| Gateway::start(&text)).collect();
        let crowds: Vec<_> = all.iter().map(|it| (it, 3)).collect();
        let left = left_a_second(&app, &crowds, takes);
        assert!(app.most() <= places as usize, "{} at once", app.most());
        assert!(left <= 1.02 * f64::from(rate), "{left:.1} a second left");
        println!("{places} places, {gateways} gateways, {takes} ms: {left:.1} of {rate} a second");
        if left < 0.95 * f64::from(rate) {
            return Err(format!("only {left:.1} of {rate} a second left"));
        }
        Ok(())
    });
}

#[test]
fn one_place_for_two_gateways_lets_the_whole_rate_leave() {
    let _half = half_alone();
    the_rate_leaves(1, 2, 10, 30);
}

#[test]
fn places_that_are_idle_for_most_of_the_time_let_the_whole_rate_leave() {
    let _half = half_alone();
    the_rate_leaves(2, 3, 20, 20);
}

#[test]
fn places_that_are_busy_for_most_of_the_time_let_the_whole_rate_leave() {
    let _half = half_alone();
    the_rate_leaves(2, 3, 20, 50);
}

#[test]
fn two_places_for_six_gateways_let_the_whole_rate_leave() {
    let _half = half_alone();
    the_rate_leaves(2, 6, 50, 10);
}

/// Slots come more often than a permit can change the gateway, so a holder uses it repeatedly.
#[test]
fn a_fast_pace_with_one_place_is_not_lost_on_the_way() {
    let _half = half_alone();
    the_rate_leaves(1, 2, 100, 2);
}

/// An idle gateway keeps no permit from gateways with waiting requests.
#[test]
fn idle_gateways_cost_the_others_nothing_of_the_rate() {
    let _half = half_alone();
    for busy_ones in [1, 2] {
        best_of_three(|_| {
            let (app, redis) = (Counting::start(), Redis::start());
            let text = app.file(&redis, "max_in_flight = 2\nrate = \"40r/s\"");
            let all = [0; 4].map(|_| Gateway::start(&text));
            let crowds: Vec<_> = all[..busy_ones].iter().map(|it| (it, 4)).collect();
            let left = left_a_second(&app, &crowds, 25);
            assert!(app.most() <= 2, "{} at once", app.most());
            if left < 0.95 * 40.0 {
                return Err(format!("only {left:.1} of 40 a second left"));
            }
            Ok(())
        });
    }
}
