//! Files that are read again while the gateway runs.

use std::time::Duration;

use crate::observe::certificates::log_expiring;

/// Interval between looks at the files.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Calls `renew` every two seconds. It reads the files, and puts them into force if they changed.
///
/// A problem is logged once. `consequence`: what the log says of it.
pub(super) async fn follow_files<E: ToString + Send + 'static>(
    consequence: &str,
    renew: impl Fn() -> Result<(), E> + Clone + Send + 'static,
) {
    let mut told = None;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let Ok(renewed) = tokio::task::spawn_blocking(renew.clone()).await else {
            continue;
        };
        let problem = renewed.err().map(|error| error.to_string());
        if let Some(problem) = problem.as_ref().filter(|it| told.as_ref() != Some(*it)) {
            tracing::error!("{problem}; {consequence}");
        }
        told = problem;
        log_expiring();
    }
}
