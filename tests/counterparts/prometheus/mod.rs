//! Tests of the dashboards, alerts and scrape configuration in `grafana`.
//!
//! They use a real Prometheus that scrapes a real gateway.

mod alerts;
mod board;
mod exposition;
mod expression;
mod idle;
mod layout;
mod live;
mod panels;
mod quantiles;
mod runbooks;
mod server;

use std::fs;
use std::path::PathBuf;

/// Returns a path in the folder `grafana`.
fn provided(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("grafana")
        .join(path)
}

fn read(path: &str) -> String {
    let path = provided(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
