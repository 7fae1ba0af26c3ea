//! Tests of `above_burst`: waiters beyond `burst`.

use super::*;

/// Returns the answer to a join: the remaining requests, or the reason of the rejection.
///
/// Returns `None` if the request waits.
async fn answer_of(joining: &mut Joining<'static>) -> Option<Result<u32, Rejected>> {
    let answer = peek(joining).await?;
    Some(match answer {
        Ok(admission) => {
            let remaining = admission.grant().prediction.remaining;
            admission.take();
            Ok(remaining)
        }
        Err(rejection) => Err(rejection.reason),
    })
}

/// Returns the answers to these joins.
async fn all_answers(joins: &mut [Joining<'static>]) -> Vec<Option<Result<u32, Rejected>>> {
    let mut all = Vec::new();
    for joining in joins {
        all.push(answer_of(joining).await);
    }
    all
}

#[actix::test]
async fn requests_within_delay_pass_and_the_rest_is_paced_while_others_are_refused() {
    let bench = Bench::new("10r/s", 10);
    // One request less passes at once than may wait, so that requests above `burst` have a queue.
    let delayed = Limit {
        delay: Delay::Above(2),
        ..burst(3)
    };
    let held = delayed.with_above_burst(2);
    let mut joins = bench.joins(7, "a", held).await;
    let mut plain = bench.joined("a", delayed).await;
    let first = all_answers(&mut joins[..3]).await;
    assert_eq!(first, [Some(Ok(3)), Some(Ok(2)), Some(Ok(1))]);
    assert_eq!(all_answers(&mut joins[3..6]).await, [None; 3]);
    assert_eq!(answer_of(&mut joins[6]).await, Some(Err(Rejected::Burst)));
    assert_eq!(answer_of(&mut plain).await, Some(Err(Rejected::Burst)));
    for (nth, held) in joins[3..6].iter_mut().enumerate() {
        bench.advance(99 * MS).await;
        assert_eq!(answer_of(held).await, None, "{nth} is early");
        bench.advance(MS).await;
        // Waiters above `burst` do not count as remaining.
        let remaining = u32::from(nth == 2);
        assert_eq!(answer_of(held).await, Some(Ok(remaining)), "{nth}");
    }
}

#[actix::test]
async fn requests_above_burst_wait_for_a_permit_too() {
    let bench = Bench::without_rate();
    let limit = at_most(1, 1);
    let running = bench.pass("a", limit).await.expect("a permit");
    let mut held = bench.joins(4, "a", limit.with_above_burst(2)).await;
    assert_eq!(all_answers(&mut held[..3]).await, [None; 3]);
    assert_eq!(answer_of(&mut held[3]).await, Some(Err(Rejected::InFlight)));
    let mut plain = bench.joined("a", limit).await;
    assert_eq!(answer_of(&mut plain).await, Some(Err(Rejected::InFlight)));
    Bench::end(running).await;
    assert_eq!(answer_of(&mut held[0]).await, Some(Ok(0)));
}
