use std::collections::BTreeMap;

use serde::Serialize;

use super::Plain;

/// Numbers of answers, by class of their status: `2xx`; classes without any are left out.
pub type Codes = BTreeMap<Plain, u64>;

/// Quantiles of durations, in seconds; `None` without any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    pub p50: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
}

/// A route in one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RouteSample {
    pub name: Plain,
    /// Answers to clients, by class of their status.
    pub codes: Codes,
    /// From the request's head to the last byte of the answer.
    pub latency: Latency,
}
