//! Notifies the watchdog of a service manager, as long as all threads of the gateway respond.
//!
//! If the notifications stop, the manager restarts the gateway.

use std::convert::Infallible;
use std::env;
use std::future::pending;
use std::time::Duration;

use actix_rt::ArbiterHandle;
use futures_util::future::join_all;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::notify::ServiceManager;

/// Interval of watchdog notifications to the service manager; `None` without a watchdog.
///
/// It is half of `WATCHDOG_USEC`, as `sd_watchdog_enabled(3)` advises. The main task of the process
/// sends the notifications. So none is sent while that task is stuck.
pub(super) struct Watchdog(Option<Duration>);

impl Watchdog {
    /// Reads `WATCHDOG_USEC`, if `WATCHDOG_PID` is this process or not set.
    pub(super) fn from_env() -> Self {
        let [usec, pid] = ["WATCHDOG_USEC", "WATCHDOG_PID"].map(|name| env::var(name).ok());
        Self(usec.and_then(|usec| interval(&usec, pid.as_deref(), std::process::id())))
    }

    /// Notifies `manager` each time that all of `threads` have responded.
    pub(super) async fn notify_while_all_respond(
        &self,
        manager: &ServiceManager,
        threads: &[ArbiterHandle],
    ) -> Infallible {
        let Some(interval) = self.0 else {
            return pending().await;
        };
        loop {
            sleep(interval).await;
            let responses = join_all(threads.iter().map(responds)).await;
            if responses.contains(&false) {
                tracing::error!(
                    "watchdog notifications stopped: a thread exited; the service manager restarts the gateway"
                );
                return pending().await;
            }
            manager.send_alive();
        }
    }
}

/// Computes the interval from the two variables; `None` if they are not for this process.
fn interval(usec: &str, pid: Option<&str>, own_pid: u32) -> Option<Duration> {
    let is_for_this_process = pid.is_none_or(|pid| pid.parse() == Ok(own_pid));
    let usec = usec.parse::<u64>().ok().filter(|usec| *usec > 0)?;
    is_for_this_process.then(|| Duration::from_micros(usec) / 2)
}

/// Waits until `thread` responds after its earlier work; `false` if the thread has ended.
async fn responds(thread: &ArbiterHandle) -> bool {
    let (answer, answered) = oneshot::channel();
    thread.spawn_fn(move || {
        // The receiver is dropped only when the process ends.
        let _ignored = answer.send(());
    }) && answered.await.is_ok()
}

#[cfg(test)]
mod tests {
    use actix_rt::Arbiter;
    use tokio::time::timeout;

    use super::*;

    #[test]
    fn the_watchdog_interval_is_half_of_watchdog_usec() {
        let second = Some(Duration::from_secs(1));
        assert_eq!(interval("2000000", None, 7), second);
        assert_eq!(interval("2000000", Some("7"), 7), second);
        assert_eq!(interval("2000000", Some("8"), 7), None);
        assert_eq!(interval("0", None, 7), None);
        assert_eq!(interval("soon", None, 7), None);
    }

    #[actix::test]
    async fn a_thread_answers_unless_it_is_stuck_or_has_ended() {
        let thread = Arbiter::new();
        let handle = thread.handle();
        assert!(responds(&handle).await);

        let (free, stuck) = std::sync::mpsc::channel::<()>();
        handle.spawn_fn(move || {
            let _freed = stuck.recv();
        });
        let asked = timeout(Duration::from_millis(100), responds(&handle));
        assert!(asked.await.is_err());
        drop(free);
        assert!(responds(&handle).await);

        thread.stop();
        thread.join().unwrap();
        assert!(!responds(&handle).await);
    }
}
