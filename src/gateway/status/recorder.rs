use std::io;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use crate::observe::metrics;

/// Collects what the crate `metrics` counts for the process.
#[derive(Clone)]
pub struct Recorder(PrometheusHandle);

impl Recorder {
    /// Installs the recorder. Call once in a process.
    ///
    /// # Errors
    ///
    /// Returns an error if a recorder was installed before.
    pub fn install() -> io::Result<Self> {
        let handle = PrometheusBuilder::new().install_recorder();
        let handle = handle.map_err(|error| io::Error::other(error.to_string()))?;
        metrics::describe();
        Ok(Self(handle))
    }

    /// What was counted, in the text format of Prometheus.
    pub fn render(&self) -> String {
        self.0.render()
    }
}
