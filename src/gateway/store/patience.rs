//! Timeout of the wait for an answer of the store.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout, timeout_at};

/// Waits for an answer for at most `limit`.
///
/// Time in which this process could not run, because it was stopped or had no CPU, does not count,
/// up to `limit`. The answer may have arrived meanwhile, and then the store is not unavailable.
pub async fn within<A: Future>(
    limit: Duration,
    mut answer: Pin<&mut A>,
) -> Result<A::Output, Elapsed> {
    let ends = Instant::now() + limit;
    if let Ok(answer) = timeout_at(ends, &mut answer).await {
        return Ok(answer);
    }
    timeout(ends.elapsed().min(limit), answer).await
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
