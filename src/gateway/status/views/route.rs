use std::collections::BTreeMap;

use serde::Serialize;

use super::Plain;

/// Numbers of answers, by class of their status: `2xx`; classes without any are left out.
pub type Codes = BTreeMap<Plain, u64>;

/// `/api/routes`.
#[expect(clippy::struct_field_names, reason = "it is the name in the API")]
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Routes {
    pub routes: Vec<Route>,
    /// Answers to requests that no route took.
    pub unrouted: Codes,
    /// That of all routes; left out without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<Maintenance>,
}

/// Requests get 503 for a while.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Maintenance {
    /// When it was set, and when it ends; in UTC.
    pub since: Plain,
    pub until: Plain,
    /// Who set it: the name of a token, or the address of the admin port's client.
    pub by: Plain,
}

/// A route, and what its clients got.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Route {
    pub name: Plain,
    /// Empty if it refuses its requests.
    pub origin: Plain,
    /// The status with which it refuses its requests, if it does.
    pub refuses: Option<u16>,
    /// Its own, or that of all routes; left out without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<Maintenance>,
    /// The zones of its limits.
    pub zones: Vec<Plain>,
    /// Answers since the start: each request counts once.
    pub requests: u64,
    /// By status.
    pub statuses: BTreeMap<Plain, u64>,
    /// From the request's head to the last byte of the answer, in the last minute.
    pub latency: Latency,
    /// What its requests cost, if that is learned; left out if not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<RouteCost>,
}

/// What the requests of a route cost, as far as it was learned.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RouteCost {
    /// Whether the costs are only shown, and each request counts for 1.
    pub shadow: bool,
    /// By method: those of which requests have ended.
    pub methods: BTreeMap<Plain, MethodCost>,
}

/// What the requests of one method of a route cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MethodCost {
    /// What a request counts for now.
    pub cost: u32,
    /// How long a request takes the origin; `None`: nothing was learned yet.
    pub seconds: Option<f64>,
    /// Where the cost comes from: `quiet`, `busy`, `median` or `none`.
    pub source: Plain,
    /// Requests that have ended.
    pub requests: u64,
    /// Their time at the origin together.
    pub origin_seconds: f64,
}

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
