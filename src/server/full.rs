//! Tells when all client connections are in use, so that new clients wait.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use super::kernel_queue::KernelQueue;
use crate::limit::Moment;
use crate::observe::connections::{ClientConnections, ConnectionCounts};
use crate::time::clock;

/// Interval between looks.
const EVERY: Duration = Duration::from_secs(1);
/// So many seconds without a waiting client end what the log says of it.
const CALM: u32 = 5;

/// What the log was last told.
#[derive(Debug, Default)]
struct LoggedState {
    /// Since when clients have waited, if the log says so.
    full_since: Option<Moment>,
    /// Seconds without a waiting client since then.
    calm: u32,
}

/// A line for the log.
#[derive(Debug, PartialEq, Eq)]
enum News {
    Full,
    FreeAfter(Duration),
}

/// Looks each second whether clients wait for a place. Never ends.
pub(super) async fn watch(connections: ClientConnections, queue: KernelQueue) {
    let mut told = LoggedState::default();
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let was_blocked = connections.take_blocked();
        let waiting = was_blocked.then(|| queue.len()).flatten();
        // A listener also waits for a place before it knows whether it has another client.
        let is_full = was_blocked && waiting != Some(0);
        connections.note(is_full, waiting);
        let ConnectionCounts {
            max: max_connections,
            few_descriptors,
            ..
        } = connections.counts();
        match told.second(is_full, clock::now()) {
            Some(News::Full) if few_descriptors => tracing::warn!(
                max_connections,
                waiting,
                "all client connections are in use, and new clients wait in the kernel; raise the limit of file descriptors (LimitNOFILE in systemd, ulimit -n)"
            ),
            Some(News::Full) => tracing::warn!(
                max_connections,
                waiting,
                "all client connections are in use, and new clients wait in the kernel; raise server.max_connections, or lower server.keep_alive"
            ),
            Some(News::FreeAfter(full_for)) => tracing::info!(
                max_connections,
                ?full_for,
                "client connections are free again"
            ),
            None => {}
        }
    }
}

impl LoggedState {
    /// What to tell after a second in which clients waited or not.
    fn second(&mut self, is_full: bool, now: Moment) -> Option<News> {
        if is_full {
            self.calm = 0;
            let is_new = self.full_since.is_none();
            self.full_since.get_or_insert(now);
            return is_new.then_some(News::Full);
        }
        let since = self.full_since?;
        self.calm += 1;
        (self.calm >= CALM).then(|| {
            *self = Self::default();
            News::FreeAfter(now.since(since).saturating_sub(EVERY * CALM))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_begin_and_an_end_are_told_once_however_it_flickers() {
        let mut told = LoggedState::default();
        let mut news = Vec::new();
        // Full from second 3 to 5, and again in 7 and 20.
        for second in 0..40_u64 {
            let is_full = [3, 4, 5, 7, 20].contains(&second);
            let now = Moment::from_nanos(second * 1_000_000_000);
            news.extend(told.second(is_full, now).map(|it| (second, it)));
        }
        let after = |seconds| News::FreeAfter(Duration::from_secs(seconds));
        assert_eq!(
            news,
            [
                (3, News::Full),
                (12, after(4)),
                (20, News::Full),
                (25, after(0))
            ]
        );
    }
}
