use std::io;
use std::time::Duration;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use crate::metrics;

/// How often what was measured since is folded into the histograms, so that it takes no room while nobody asks.
const FOLD_EVERY: Duration = Duration::from_secs(5);

/// Where all metrics of this process come together.
#[derive(Clone)]
pub struct Recorder {
    handle: PrometheusHandle,
    process: metrics_process::Collector,
}

impl Recorder {
    /// Starts to record. Call once in a process, on a thread with a runtime.
    ///
    /// # Errors
    ///
    /// Where a recorder was installed before.
    pub fn install() -> io::Result<Self> {
        let recorder = PrometheusBuilder::new()
            .set_buckets(&metrics::SECONDS)
            .map_err(io::Error::other)?
            .build_recorder();
        let handle = recorder.handle();
        ::metrics::set_global_recorder(recorder)
            .map_err(|error| io::Error::other(error.to_string()))?;
        metrics::describe();
        let folded = handle.clone();
        actix_rt::spawn(async move {
            let mut ticks = tokio::time::interval(FOLD_EVERY);
            loop {
                ticks.tick().await;
                folded.run_upkeep();
            }
        });
        let process = metrics_process::Collector::default();
        process.describe();
        Ok(Self { handle, process })
    }

    /// All metrics, in the text format of Prometheus.
    #[must_use]
    pub fn render(&self) -> String {
        self.process.collect();
        self.handle.render()
    }
}
