//! Requests that are held back where `burst` has no room left.

use std::num::NonZeroU32;

use super::*;

/// What a join was answered: how many requests it was told remain, or why it was rejected; `None`
/// if it waits.
async fn told(joining: &mut Joining<'static>) -> Option<Result<u32, Rejected>> {
    let answer = peek(joining).await?;
    Some(match answer {
        Ok(turn) => {
            let remaining = turn.grant().outlook.remaining;
            turn.take();
            Ok(remaining)
        }
        Err(rejection) => Err(rejection.reason),
    })
}

async fn all_told(joins: &mut [Joining<'static>]) -> Vec<Option<Result<u32, Rejected>>> {
    let mut all = Vec::new();
    for joining in joins {
        all.push(told(joining).await);
    }
    all
}

#[test]
fn burst_passes_at_once_and_the_rest_is_paced_while_others_are_refused() {
    run(async {
        let bench = Bench::new("10r/s", 10);
        // One less passes at once than may wait, so that those above `burst` have a queue.
        let delayed = Limit {
            delay: Delay::Above(2),
            ..burst(3)
        };
        let held = delayed.with_above_burst(2);
        let mut joins: Vec<_> = (0..7).map(|_| bench.join("a", held)).collect();
        let mut plain = bench.join("a", delayed);
        Bench::settle().await;
        let first = all_told(&mut joins[..3]).await;
        assert_eq!(first, [Some(Ok(3)), Some(Ok(2)), Some(Ok(1))]);
        assert_eq!(all_told(&mut joins[3..6]).await, [None; 3]);
        assert_eq!(told(&mut joins[6]).await, Some(Err(Rejected::Burst)));
        assert_eq!(told(&mut plain).await, Some(Err(Rejected::Burst)));
        for (nth, held) in joins[3..6].iter_mut().enumerate() {
            bench.advance(Duration::from_millis(99)).await;
            assert_eq!(told(held).await, None, "{nth} is early");
            bench.advance(Duration::from_millis(1)).await;
            // No place above burst counts as remaining.
            let remaining = u32::from(nth == 2);
            assert_eq!(told(held).await, Some(Ok(remaining)), "{nth}");
        }
    });
}

/// Where nothing waits, nothing is held.
#[test]
fn without_a_queue_above_delay_nobody_is_held() {
    run(async {
        let bench = Bench::new("10r/s", 10);
        let limits = [
            ("nodelay", Delay::Never, 4),
            ("all pass", Delay::Above(4), 4),
            ("nothing waits", Delay::Above(0), 0),
        ];
        for (key, delay, most) in limits {
            let limit = Limit {
                delay,
                ..burst(most)
            };
            let many = most as usize + 1;
            let mut joins: Vec<_> = (0..=many)
                .map(|_| bench.join(key, limit.with_above_burst(128)))
                .collect();
            Bench::settle().await;
            assert!(
                all_told(&mut joins[..many])
                    .await
                    .iter()
                    .all(Option::is_some)
            );
            let sixth = told(&mut joins[many]).await;
            assert_eq!(sixth, Some(Err(Rejected::Burst)), "{key}");
        }
    });
}

/// A queue is made longer by what leaves within a minute.
#[test]
fn nobody_is_held_for_longer_than_a_minute() {
    run(async {
        let bench = Bench::new("10r/m", 10);
        let mut joins: Vec<_> = (0..12)
            .map(|_| bench.join("a", burst(3).with_above_burst(128)))
            .collect();
        Bench::settle().await;
        assert_eq!(all_told(&mut joins[1..11]).await, [None; 10]);
        assert_eq!(told(&mut joins[11]).await, Some(Err(Rejected::Burst)));
        // A burst that makes requests wait longer stays as it is.
        let mut joins: Vec<_> = (0..22)
            .map(|_| bench.join("b", burst(20).with_above_burst(128)))
            .collect();
        Bench::settle().await;
        assert_eq!(all_told(&mut joins[1..21]).await, [None; 20]);
        assert_eq!(told(&mut joins[21]).await, Some(Err(Rejected::Burst)));
    });
}

#[test]
fn held_and_other_requests_leave_in_the_order_in_which_they_came() {
    run(async {
        let bench = Bench::new("10r/s", 10);
        let (plain, held) = (burst(3), burst(3).with_above_burst(9));
        let mut joins: Vec<_> = [plain, held, plain, held, held, held]
            .into_iter()
            .map(|limit| bench.join("a", limit))
            .collect();
        Bench::settle().await;
        // Of the plain ones, both are within burst.
        for next in 0..6 {
            assert!(told(&mut joins[next]).await.is_some(), "{next}");
            assert_eq!(all_told(&mut joins[next + 1..]).await, vec![None; 5 - next]);
            bench.advance(Duration::from_millis(100)).await;
        }
    });
}

#[test]
fn one_who_leaves_gives_its_place_to_the_next() {
    run(async {
        let bench = Bench::new("10r/s", 10);
        let held = burst(1).with_above_burst(1);
        let mut joins: Vec<_> = (0..4).map(|_| bench.join("a", held)).collect();
        Bench::settle().await;
        assert_eq!(told(&mut joins[3]).await, Some(Err(Rejected::Burst)));
        drop(joins.remove(1));
        Bench::settle().await;
        let mut last = bench.join("a", held);
        Bench::settle().await;
        assert_eq!(told(&mut last).await, None);
        bench.advance(Duration::from_millis(100)).await;
        assert!(told(&mut joins[1]).await.is_some());
        bench.advance(Duration::from_millis(100)).await;
        assert!(told(&mut last).await.is_some());
    });
}

#[test]
fn max_wait_bounds_how_long_a_request_is_held() {
    run(async {
        let bench = Bench::new("10r/s", 10);
        let held = Limit {
            max_wait: Some(Duration::from_millis(200)),
            ..burst(1).with_above_burst(9)
        };
        let mut joins: Vec<_> = (0..4).map(|_| bench.join("a", held)).collect();
        Bench::settle().await;
        assert_eq!(all_told(&mut joins[1..3]).await, [None; 2]);
        assert_eq!(told(&mut joins[3]).await, Some(Err(Rejected::MaxWait)));
    });
}

#[test]
fn they_wait_for_a_place_too() {
    run(async {
        let mut bench = Bench::new("1r/s", 10);
        bench.retune(Rate::UNLIMITED);
        let limit = Limit {
            in_flight: NonZeroU32::new(1),
            ..burst(1)
        };
        let running = {
            let mut joining = bench.join("a", limit);
            Bench::settle().await;
            let turn = peek(&mut joining).await.expect("runs").expect("a turn");
            turn.take().expect("a place")
        };
        let mut held: Vec<_> = (0..4)
            .map(|_| bench.join("a", limit.with_above_burst(2)))
            .collect();
        Bench::settle().await;
        assert_eq!(all_told(&mut held[..3]).await, [None; 3]);
        assert_eq!(told(&mut held[3]).await, Some(Err(Rejected::InFlight)));
        let mut plain = bench.join("a", limit);
        Bench::settle().await;
        assert_eq!(told(&mut plain).await, Some(Err(Rejected::InFlight)));
        drop(running);
        Bench::settle().await;
        assert_eq!(told(&mut held[0]).await, Some(Ok(0)));
    });
}
