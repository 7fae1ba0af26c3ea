use std::sync::Arc;
use std::time::Duration;

use super::field_edits::FieldEdits;
use super::path_pattern::PathPattern;
use super::rewrite::PathRewrite;
use super::{CostRule, RequestInputs, Statuses};
use crate::limit::{Cost, Limit};

/// One of the `[[routes]]`. No two have the same path, host and methods.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// The paths that it takes.
    pub path: PathPattern,
    /// The host that it takes, in lowercase, without a port; `None`: every host.
    pub host: Option<String>,
    /// The methods that it takes; empty: every method.
    pub methods: Vec<String>,
    /// What happens to its requests.
    pub action: RouteAction,
    /// How their path becomes that which the origin gets; `None`: they are sent on as they came.
    pub rewrite: Option<PathRewrite>,
    /// Changes of the fields that the origin gets.
    pub request_fields: FieldEdits,
    /// Changes of the fields of all responses: those of the origin and the gateway's own.
    pub response_fields: FieldEdits,
    /// Changes of the fields of the gateway's own responses; they go before the others.
    pub answer_fields: FieldEdits,
    /// The class of its requests at the origin's gate; empty if the origin has no classes.
    pub class: Arc<str>,
    /// What its limits read from the fields and the query of a request.
    pub inputs: RequestInputs,
    /// What its requests count for in the zones and at the origin's gate.
    pub cost: CostRule,
    /// A request that is answered so is not charged in the zones after all.
    pub refund: Vec<Statuses>,
    /// Its limits, each zone at most once; empty: the route only forwards.
    pub limits: Vec<RouteLimit>,
    /// Longest time that a request may wait, in its zones and at the origin's gate together.
    pub max_wait: Option<Duration>,
    /// Dry run: decide, count and log, but pass every request at once.
    pub dry_run: bool,
    /// Status of a rejection, 400 to 599.
    pub reject_status: u16,
    /// Body of a rejection.
    pub reject_body: String,
    /// Header fields that tell the client about its limits.
    pub headers: RatelimitHeaders,
}

/// What happens to the requests of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteAction {
    /// They go to the origin with this index in [`super::Settings::origins`].
    Forward(usize),
    /// They are answered with this status, 400 to 599.
    Refuse(u16),
}

impl Route {
    /// The index of its origin; `None` if it refuses its requests.
    #[must_use]
    pub fn origin(&self) -> Option<usize> {
        match self.action {
            RouteAction::Forward(origin) => Some(origin),
            RouteAction::Refuse(_) => None,
        }
    }

    /// Whether requests of the route may be charged differently.
    #[must_use]
    pub fn has_cost(&self) -> bool {
        !self.refund.is_empty() || self.cost != CostRule::default()
    }

    /// Whether the answer decides what a request is charged.
    #[must_use]
    pub fn settles(&self) -> bool {
        !self.refund.is_empty() || matches!(self.cost, CostRule::ResponseHeader { .. })
    }

    /// Whether the route is made for the check of a certificate authority that the host is under
    /// control, which asks over HTTP without TLS (RFC 8555, section 8.3).
    #[must_use]
    pub fn is_for_acme(&self) -> bool {
        self.path.begins_with("/.well-known/acme-challenge/")
    }

    /// The route's name in logs and metrics.
    ///
    /// It is the path as written, after the host if the route has one.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.host {
            Some(host) => format!("{host} {}", self.path),
            None => self.path.to_string(),
        }
    }
}

/// One limit of a route, in one zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteLimit {
    /// Index into [`super::Settings::zones`].
    pub zone: usize,
    /// The limit's values. `delay` is never above `burst`; `max_wait` is the route's, and `cost`
    /// is that of a request of which nothing is known.
    pub limit: Limit,
}

impl RouteLimit {
    /// The same limit for a request of this cost, if it is known.
    #[must_use]
    pub fn costing(self, cost: Option<Cost>) -> Self {
        let cost = cost.unwrap_or(self.limit.cost);
        let limit = Limit { cost, ..self.limit };
        Self { limit, ..self }
    }
}

impl RatelimitHeaders {
    /// Their names in the file, in the order of the fields here.
    pub const NAMES: [&'static str; 3] = ["x-ratelimit", "ratelimit", "server-timing"];
}

/// Header fields that tell a client about its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RatelimitHeaders {
    /// `X-RateLimit-Limit` and related fields.
    pub x_ratelimit: bool,
    /// `RateLimit` and `RateLimit-Policy`, the IETF draft.
    pub ratelimit: bool,
    /// `Server-Timing`: how long the request waited in the queue.
    pub server_timing: bool,
}
