//! Sends spans to a collector, in batches, from a thread of its own.
//!
//! A span is a part of a request's trace (OpenTelemetry). `collector` is the HTTP client.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use config::Settings;
use futures_util::FutureExt;
use http::Uri;
use metrics::Counter;
use opentelemetry::KeyValue;
use opentelemetry_otlp::{Protocol, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use tokio::sync::oneshot;

use super::collector::Collector;
use super::{Parent, RequestSpans, Trace, data};
use crate::observe::metrics::dropped_spans;
use crate::observe::throttle::Throttle;
use crate::time::clock;

/// Maximum number of spans that wait for the collector. Further ones are dropped and counted.
const MAX_WAITING: usize = 4096;

/// Maximum number of spans in one request to the collector.
const BATCH: usize = 512;

/// Time that spans wait for others in the same batch.
const BATCH_INTERVAL: Duration = Duration::from_millis(200);

/// Time limit for the last spans at the end.
const MAX_LAST_SPANS: Duration = Duration::from_secs(1);

/// Sends spans to a collector, from a thread of its own.
///
/// The crate's own processor is not used: it panics if it gets no thread, does not report which
/// spans it dropped, and waits for the collector when it is dropped.
pub struct Spans {
    /// Channel for spans to the thread.
    queue: SyncSender<SpanData>,
    /// Requests the thread to send the waiting spans, to confirm that, and to end.
    end: SyncSender<oneshot::Sender<()>>,
    waiting: Arc<PendingSpans>,
}

/// Spans that the collector does not have yet.
#[derive(Debug)]
struct PendingSpans {
    /// Number of waiting spans.
    count: AtomicUsize,
    /// Metric of lost spans.
    dropped: Counter,
}

impl Spans {
    /// Starts the thread that sends spans to the collector of these settings, if they have one.
    ///
    /// If that fails there are no spans, and the log has the reason.
    pub fn start(settings: &Settings) -> Option<Self> {
        let collector = settings.log.otlp.as_ref()?;
        Self::start_for(collector, &settings.server.name)
            .inspect_err(|error| tracing::error!(%collector, %error, "spans cannot be sent"))
            .ok()
    }

    /// Starts the thread that sends spans to this collector.
    fn start_for(collector: &Uri, name: &str) -> io::Result<Self> {
        let waiting = Arc::new(PendingSpans {
            count: AtomicUsize::new(0),
            dropped: dropped_spans(),
        });
        let mut exporter = Exporter::new(collector, name, Arc::clone(&waiting))?;
        let (queue, spans) = sync_channel(MAX_WAITING);
        let (end, end_requests) = sync_channel(1);
        thread::Builder::new()
            .name("spans".to_owned())
            .spawn(move || exporter.run(&spans, &end_requests))?;
        Ok(Self {
            queue,
            end,
            waiting,
        })
    }

    /// Returns the trace of a request that has these `traceparent` fields, if it is sampled.
    pub fn trace<'f>(&self, fields: impl Iterator<Item = &'f [u8]>) -> Option<Trace> {
        let parent = Parent::sampled(fields)?;
        let origin = data::new_id();
        Some(Trace { parent, origin })
    }

    /// Passes the spans of a request to the thread.
    ///
    /// Never waits: if too many spans wait, these are dropped.
    pub fn send(&self, request: RequestSpans<'_>) {
        for span in data::build(request) {
            self.waiting.count.fetch_add(1, Ordering::Relaxed);
            if self.queue.try_send(span).is_err() {
                self.waiting.lose(1);
            }
        }
    }

    /// Waits at most a second until all spans are sent. Returns the number of lost spans.
    ///
    /// From then on nothing is sent.
    pub async fn finish(&self) -> usize {
        let (confirm, confirmed) = oneshot::channel();
        if self.end.try_send(confirm).is_ok() {
            // Spans that are not sent now are lost, whether the time is over or the thread has
            // ended.
            let _done = tokio::time::timeout(MAX_LAST_SPANS, confirmed).await;
        }
        let lost = self.waiting.count.swap(0, Ordering::Relaxed);
        self.waiting.dropped.increment(lost as u64);
        lost
    }
}

impl PendingSpans {
    /// Counts lost spans.
    fn lose(&self, count: usize) {
        if self.settle(count) {
            self.dropped.increment(count as u64);
        }
    }

    /// Subtracts spans from the number of waiting ones. Returns whether they were counted there.
    ///
    /// [`Spans::finish`] may have counted them as lost before.
    fn settle(&self, count: usize) -> bool {
        let subtract = |waiting: usize| waiting.checked_sub(count);
        let settled = self
            .count
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, subtract);
        settled.is_ok()
    }
}

/// Sends batches, counts lost spans, and logs when the collector fails and when it is back.
struct Exporter {
    otlp: opentelemetry_otlp::SpanExporter,
    collector: Collector,
    waiting: Arc<PendingSpans>,
    failures: Throttle,
    /// Number of spans lost since the log reported that the collector fails; `None`: it works.
    lost: Option<usize>,
}

impl Exporter {
    fn new(collector: &Uri, name: &str, waiting: Arc<PendingSpans>) -> io::Result<Self> {
        let url = format!("{}/v1/traces", collector.to_string().trim_end_matches('/'));
        let collector = Collector::default();
        let mut otlp = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_http_client(collector.clone())
            .with_endpoint(url)
            // Otherwise a variable of the environment may select a protocol that this build does
            // not support.
            .with_protocol(Protocol::HttpBinary)
            .build()
            .map_err(io::Error::other)?;
        let resource = Resource::builder_empty().with_attributes([
            KeyValue::new("service.name", "drip"),
            KeyValue::new("service.instance.id", name.to_owned()),
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        ]);
        otlp.set_resource(&resource.build());
        Ok(Self {
            otlp,
            collector,
            waiting,
            failures: Throttle::new(),
            lost: None,
        })
    }

    /// Sends batches until the end is requested.
    fn run(&mut self, spans: &Receiver<SpanData>, end: &Receiver<oneshot::Sender<()>>) {
        loop {
            let end_request = end.recv_timeout(BATCH_INTERVAL);
            loop {
                let batch: Vec<_> = spans.try_iter().take(BATCH).collect();
                if batch.is_empty() {
                    break;
                }
                self.export(batch);
            }
            match end_request {
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
                Ok(done) => {
                    // The receiver is dropped if the caller did not wait so long.
                    let _late = done.send(());
                    return;
                }
            }
        }
    }

    /// Sends one batch, and logs failures and recoveries.
    fn export(&mut self, batch: Vec<SpanData>) {
        let count = batch.len();
        // The collector's client blocks, so its future is ready at once.
        let sent = self.otlp.export(batch).now_or_never();
        let sent = match sent {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(match self.collector.take_failure() {
                Some(failure) => failure,
                None => io::Error::other(error),
            }),
            None => Err(io::Error::other("the client did not block")),
        };
        match sent {
            Ok(()) => {
                self.waiting.settle(count);
                if let Some(lost) = self.lost.take() {
                    tracing::info!(lost, "the collector takes spans again");
                }
            }
            Err(error) => {
                self.waiting.lose(count);
                if self.lost.is_none() && self.failures.show(clock::now()).is_some() {
                    tracing::warn!(%error, "the collector takes no spans; they are lost");
                    self.lost = Some(0);
                }
                if let Some(lost) = &mut self.lost {
                    *lost += count;
                }
            }
        }
    }
}
