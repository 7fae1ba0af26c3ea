//! Timeout for an answer of Redis, which does not count time in which this process stood still.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout, timeout_at};

/// Waits for an answer for at most `limit`.
///
/// If this process stood still meanwhile, because it was stopped or had no CPU, it waits longer by
/// that time, but at most by `limit`. The answer may have arrived meanwhile, and then there is no
/// outage.
pub async fn within<A: Future>(
    limit: Duration,
    mut answer: Pin<&mut A>,
) -> Result<A::Output, Elapsed> {
    let deadline = Instant::now() + limit;
    if let Ok(answer) = timeout_at(deadline, &mut answer).await {
        return Ok(answer);
    }
    let stood_still = deadline.elapsed();
    timeout(stood_still.min(limit), answer).await
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::pin::pin;

    use tokio::sync::oneshot;
    use tokio::task::yield_now;
    use tokio::time::{advance, sleep};

    use super::*;

    const LIMIT: Duration = Duration::from_millis(100);

    #[tokio::test(start_paused = true)]
    async fn an_answer_received_while_the_process_was_suspended_counts() {
        let (answered, answer) = oneshot::channel();
        let asked = tokio::spawn(async move { within(LIMIT, pin!(answer)).await });
        yield_now().await;
        advance(Duration::from_secs(10)).await;
        // Another task has to read it from the connection first.
        sleep(LIMIT / 2).await;
        answered.send(7).expect("somebody waits");
        assert_eq!(asked.await.expect("no panic").expect("in time"), Ok(7));
    }

    #[tokio::test(start_paused = true)]
    async fn a_missing_answer_is_waited_for_until_the_limit() {
        let began = Instant::now();
        assert!(within(LIMIT, pin!(pending::<()>())).await.is_err());
        assert!(began.elapsed() <= LIMIT + Duration::from_millis(5));
        let asked = tokio::spawn(async { within(LIMIT, pin!(pending::<()>())).await });
        yield_now().await;
        advance(Duration::from_secs(10)).await;
        let woke = Instant::now();
        assert!(asked.await.expect("no panic").is_err());
        assert!(woke.elapsed() <= LIMIT + Duration::from_millis(5));
    }
}
