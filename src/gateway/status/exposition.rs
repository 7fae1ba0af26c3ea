//! `/metrics`: metrics of the process from the crate `metrics`, and series of zones, origins and
//! routes.
//!
//! A noun has series only while it is in the file, or still has waiters.

mod gates;
mod process;
mod rooms;
mod routes;
mod servers;
mod table;
mod zones;

use std::collections::HashSet;
use std::io;
use std::time::Duration;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio::time::timeout;

use self::table::{Table, labels};
use super::shared::answers;
use crate::http::gateway::Gateway;
use crate::observe::certificates::has_known_certificates;
use crate::observe::connections::ClientConnections;
use crate::observe::metrics::{self, StoreResult};
use crate::zone::{Zone, ZoneStats};

/// Number of keys of a zone that have series of their own.
pub(crate) const TOP_KEYS: usize = 10;
/// Time limit for the workers to report the state of their zones.
const STATS_TIMEOUT: Duration = Duration::from_secs(1);

/// Renders all metrics in the text format of Prometheus.
///
/// Before there is a gateway, only the metrics of the process.
pub(crate) async fn render(
    gateway: Option<&Gateway>,
    recorder: &Recorder,
    connections: &ClientConnections,
) -> String {
    let mut text = recorder.render();
    process::write(&mut text, connections);
    if let Some(gateway) = gateway {
        write_gateway(&mut text, gateway);
        write_store(&mut text, gateway);
        zones::write(&mut text, gateway).await;
        routes::write(&mut text, gateway);
        servers::write(&mut text, gateway);
        gates::write(&mut text, gateway);
        rooms::write(&mut text, gateway);
        write_collapses(&mut text, gateway);
        servers::write_certificates(&mut text, gateway);
    }
    text
}

/// Writes the metrics of a gateway that have no labels.
fn write_gateway(out: &mut String, gateway: &Gateway) {
    let mut table = Table::of_process(out);
    table.write("drip_gateway_info", |(), series| {
        series.each("name", [(&*gateway.settings().server.name, 1)]);
    });
    let memory = gateway.body_memory();
    if gateway.buffers_bodies() || memory.held() > 0 {
        table.value("drip_body_buffer_bytes", |()| memory.held());
        table.value("drip_body_buffer_max_bytes", |()| memory.limit());
        table.value("drip_body_buffer_refusals_total", |()| memory.refused());
    }
    // A listener or certificate that a reload removes from the file stays in use until the process
    // ends.
    if gateway.settings().server.tls.is_some() || has_known_certificates() {
        process::write_handshakes(out);
    }
}

/// Writes the metrics of the store; nothing if no store is used.
fn write_store(out: &mut String, gateway: &Gateway) {
    let mut table = Table::of_process(out);
    if let Some(store) = gateway.store_health() {
        table.value("drip_store_up", |()| u8::from(store.outage().is_none()));
        table.write("drip_store_duration_seconds", |(), series| {
            series.durations("", &store.round_trips().histogram);
        });
    }
    let zones = gateway.zones_in_use().filter_map(|zone| {
        let operations = zone.metrics().operations()?.each();
        let name = labels(&[("zone", &zone.settings().name)]);
        Some((name, operations.collect::<Vec<_>>()))
    });
    let origins = gateway.origins().iter().filter_map(|origin| {
        let claims = origin.gate()?.metrics().claims_made()?;
        let tried = StoreResult::ALL.into_iter().filter(|it| it.is_tried());
        let claims = tried.map(|it| (it.label(), claims.get(it)));
        let name = labels(&[("origin", &origin.settings().name)]);
        Some((name, claims.collect()))
    });
    let mut seen = HashSet::new();
    let all = zones
        .chain(origins)
        .filter(|(name, _)| seen.insert(name.clone()));
    Table::new(out, all).write("drip_store_operations_total", |operations, series| {
        series.each("result", operations.iter().copied());
    });
}

/// Writes the metrics of collapsed requests; nothing if no route collapses.
fn write_collapses(out: &mut String, gateway: &Gateway) {
    let origins = gateway.origins().iter().enumerate();
    let origins = origins.filter_map(|(index, origin)| {
        let name = labels(&[("origin", &origin.settings().name)]);
        Some((name, gateway.collapse_metrics(index)?))
    });
    let mut table = Table::new(out, origins);
    table.counts("drip_shared_requests_total", "outcome", |it| &it.requests);
    table.value("drip_shared_waiting", |it| it.waiting.get());
    table.durations("drip_shared_wait_seconds", |it| &it.waits.histogram);
    let Some(shared) = answers(gateway) else {
        return;
    };
    let mut table = Table::of_process(out);
    table.value("drip_shared_answers", |()| shared.answers);
    table.value("drip_shared_answers_bytes", |()| shared.bytes);
    table.value("drip_shared_answers_max_bytes", |()| shared.max_bytes);
    table.value("drip_shared_evictions_total", |()| shared.evicted);
}

/// Collects the state of a zone; `None` if a worker does not answer in time.
pub(crate) async fn stats(zone: &Zone) -> Option<ZoneStats> {
    timeout(STATS_TIMEOUT, zone.stats(TOP_KEYS)).await.ok()
}

/// Recorder of the crate `metrics`, for the metrics of the process.
#[derive(Clone)]
pub struct Recorder(PrometheusHandle);

impl Recorder {
    /// Installs the recorder. Call it once in a process.
    ///
    /// # Errors
    ///
    /// A recorder was installed before.
    pub fn install() -> io::Result<Self> {
        let handle = PrometheusBuilder::new().install_recorder();
        let handle = handle.map_err(|error| io::Error::other(error.to_string()))?;
        metrics::describe();
        Ok(Self(handle))
    }

    /// Renders the recorded metrics in the text format of Prometheus.
    pub fn render(&self) -> String {
        self.0.render()
    }
}
