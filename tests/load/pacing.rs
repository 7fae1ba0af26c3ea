//! Tests of the pace, as the origin sees it.

use std::time::Duration;

use crate::support::{
    Answer, Client, Gateway, MS, alone, best_of_three, check_gaps, now, quarter_alone,
    start_limited,
};

/// Sends `count` requests for `target` at once, each on its own connection.
fn at_once(gateway: &Gateway, count: usize, target: &str) -> Vec<Answer> {
    let mut clients: Vec<_> = (0..count).map(|_| gateway.connect()).collect();
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

/// Sends `count` requests at once, and checks departures in ms and the number of rejections.
fn check_vector(rate: &str, limit: &str, count: usize, departures: &[u64], rejected: usize) {
    let _alone = quarter_alone();
    let (origin, gateway) = start_limited(rate, limit);
    best_of_three(|attempt| {
        let target = format!("/?key={attempt}");
        let answers = at_once(&gateway, count, &target);
        assert_eq!(count_status(&answers, 429), rejected);
        assert_eq!(count_status(&answers, 200), count - rejected);
        let moments = origin.moments(&target);
        let found: Vec<_> = moments.iter().map(|moment| *moment - moments[0]).collect();
        let is_right = |(found, expected): (&Duration, &u64)| {
            found.abs_diff(Duration::from_millis(*expected)) <= 15 * MS
        };
        // Requests that did not have to wait left at once.
        if found.len() == departures.len() && found.iter().zip(departures).all(is_right) {
            return Ok(());
        }
        Err(format!("departures at {found:?}, not at {departures:?} ms"))
    });
}

#[test]
fn thirty_requests_at_once_reach_the_origin_one_every_50_ms() {
    let _alone = alone();
    let (origin, gateway) = start_limited("20r/s", "burst = 30");
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
fn ten_a_second_with_burst_20_and_delay_8_pass_nine_space_twelve_and_reject_one() {
    let mut departures = vec![0; 9];
    departures.extend((1..=12).map(|nth| nth * 100));
    check_vector("10r/s", "burst = 20, delay = 8", 22, &departures, 1);
}

#[test]
fn what_need_not_wait_passes_at_once_and_the_rest_is_rejected() {
    check_vector("1r/s", "burst = 2, nodelay = true", 5, &[0, 0, 0], 2);
    // An excess that is equal to `delay`.
    check_vector("2r/s", "burst = 3, delay = 3", 5, &[0, 0, 0, 0], 1);
}
