use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{CostRule, Statuses};
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
    /// Index into [`super::Settings::origins`].
    pub origin: usize,
    /// The class of its requests at the origin's gate; empty if the origin has no classes.
    pub class: Arc<str>,
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

impl Route {
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
        let (PathPattern::Prefix(path) | PathPattern::Exact(path)) = &self.path;
        path.starts_with("/.well-known/acme-challenge/")
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

/// The paths that a route takes, compared byte by byte as nginx compares prefixes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PathPattern {
    /// `"/fast"`: every path that begins with it, also `/fast.html`.
    Prefix(String),
    /// `"= /fast"`: this path only.
    Exact(String),
}

impl PathPattern {
    /// Whether the route takes this path, which has no query.
    #[must_use]
    pub fn matches(&self, path: &[u8]) -> bool {
        match self {
            Self::Prefix(prefix) => path.starts_with(prefix.as_bytes()),
            Self::Exact(exact) => path == exact.as_bytes(),
        }
    }
}

impl PathPattern {
    /// Precedence of the pattern: of the patterns that match a path, the highest wins.
    ///
    /// The longest pattern wins, and of two with the same length the exact one.
    #[must_use]
    pub fn precedence(&self) -> (usize, bool) {
        match self {
            Self::Prefix(prefix) => (prefix.len(), false),
            Self::Exact(exact) => (exact.len(), true),
        }
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix(prefix) => f.write_str(prefix),
            Self::Exact(exact) => write!(f, "= {exact}"),
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
