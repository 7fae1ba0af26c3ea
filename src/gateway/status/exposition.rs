//! `/metrics`: metrics of the process from the crate `metrics`, and series of zones, origins and
//! routes.
//!
//! A zone, origin or route has series only while it is in the file, or still has waiters. Its
//! `report` writes them, by the `table` of metrics.

pub(crate) mod table;

use std::io;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use self::table::Table;
use super::{process, route};
use crate::collapse::report as collapse;
use crate::gate::report as gate;
use crate::http::gateway::Gateway;
use crate::observe::certificates::has_known_certificates;
use crate::observe::connections::ClientConnections;
use crate::observe::metrics;
use crate::origin::report as origin;
use crate::room::report as room;
use crate::store::report as store;
use crate::zone::report as zone;

/// Renders all metrics in the text format of Prometheus.
///
/// Before there is a gateway, only the metrics of the process.
pub(crate) async fn render(
    gateway: Option<&Gateway>,
    recorder: &Recorder,
    connections: &ClientConnections,
) -> String {
    let mut text = recorder.render();
    process::metrics::write(&mut text, connections);
    if let Some(gateway) = gateway {
        write_gateway(&mut text, gateway);
        store::metrics::write(&mut text, gateway);
        zone::metrics::write(&mut text, gateway).await;
        route::metrics::write(&mut text, gateway);
        origin::metrics::write(&mut text, gateway);
        gate::metrics::write(&mut text, gateway);
        room::metrics::write(&mut text, gateway);
        collapse::metrics::write(&mut text, gateway);
        origin::metrics::write_certificates(&mut text, gateway);
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
        process::metrics::write_handshakes(out);
    }
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
