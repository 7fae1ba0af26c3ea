use std::io;
use std::sync::Arc;

use ::metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, SharedString, Unit};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use crate::observe::metrics::{self, Histograms};

/// Collects all metrics of this process.
#[derive(Clone)]
pub struct Recorder {
    handle: PrometheusHandle,
    histograms: Arc<Histograms>,
    process: metrics_process::Collector,
}

impl Recorder {
    /// Installs the recorder. Call once in a process.
    ///
    /// # Errors
    ///
    /// Returns an error if a recorder was installed before.
    pub fn install() -> io::Result<Self> {
        let exporter = PrometheusBuilder::new().build_recorder();
        let handle = exporter.handle();
        let histograms = Arc::<Histograms>::default();
        let recorder = Installed {
            exporter,
            histograms: Arc::clone(&histograms),
        };
        ::metrics::set_global_recorder(recorder)
            .map_err(|error| io::Error::other(error.to_string()))?;
        metrics::describe();
        let process = metrics_process::Collector::default();
        process.describe();
        Ok(Self {
            handle,
            histograms,
            process,
        })
    }

    /// All metrics, in the text format of Prometheus.
    #[must_use]
    pub fn render(&self) -> String {
        self.process.collect();
        let mut text = self.handle.render();
        self.histograms.render(&mut text);
        text
    }
}

/// The exporter, with histograms replaced by [`Histograms`].
struct Installed {
    exporter: PrometheusRecorder,
    histograms: Arc<Histograms>,
}

impl ::metrics::Recorder for Installed {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.exporter.describe_counter(key, unit, description);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.exporter.describe_gauge(key, unit, description);
    }

    fn describe_histogram(&self, key: KeyName, _unit: Option<Unit>, description: SharedString) {
        self.histograms.describe(key.as_str(), &description);
    }

    fn register_counter(&self, key: &Key, metadata: &Metadata<'_>) -> Counter {
        self.exporter.register_counter(key, metadata)
    }

    fn register_gauge(&self, key: &Key, metadata: &Metadata<'_>) -> Gauge {
        self.exporter.register_gauge(key, metadata)
    }

    fn register_histogram(&self, key: &Key, _metadata: &Metadata<'_>) -> Histogram {
        self.histograms.register(key)
    }
}
