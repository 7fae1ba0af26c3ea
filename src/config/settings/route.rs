use std::fmt;

use crate::limit::Limit;

/// One of the `[[routes]]`. No two have the same path, host and methods.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// Which paths it takes.
    pub path: PathPattern,
    /// Which host, in lowercase, without a port; `None`: every one.
    pub host: Option<String>,
    /// Which methods; empty: every one.
    pub methods: Vec<String>,
    /// Index into [`super::Settings::origins`].
    pub origin: usize,
    /// The zones it asks, each once; empty: it only forwards.
    pub limits: Vec<RouteLimit>,
    /// Decide, count and log, but pass everything at once.
    pub dry_run: bool,
    /// 400 to 599.
    pub reject_status: u16,
    /// The body of a rejection.
    pub reject_body: String,
    /// Which fields tell the client about its limits.
    pub headers: Dialects,
}

impl Route {
    /// What logs and metrics call it: its path as written, after its host if it has one.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.host {
            Some(host) => format!("{host} {}", self.path),
            None => self.path.to_string(),
        }
    }
}

/// Which paths a route takes, compared byte by byte as nginx compares prefixes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PathPattern {
    /// `"/fast"`: every path that begins so, `/fast.html` too.
    Prefix(String),
    /// `"= /fast"`: this path alone.
    Exact(String),
}

impl PathPattern {
    /// Whether the route takes this path, which comes without its query.
    #[must_use]
    pub fn matches(&self, path: &[u8]) -> bool {
        match self {
            Self::Prefix(prefix) => path.starts_with(prefix.as_bytes()),
            Self::Exact(exact) => path == exact.as_bytes(),
        }
    }
}

impl PathPattern {
    /// Of the patterns that match a path, the one with the highest precedence wins: the longest, and of the same
    /// length the exact one.
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

/// What a route asks of one zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteLimit {
    /// Index into [`super::Settings::zones`].
    pub zone: usize,
    /// The numbers; a delay is never above its burst, and `max_wait` is the route's.
    pub limit: Limit,
}

/// Which header fields tell a client about its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialects {
    /// `X-RateLimit-Limit` and its kin.
    pub x_ratelimit: bool,
    /// `RateLimit` and `RateLimit-Policy`, the IETF draft.
    pub ratelimit: bool,
    /// `Server-Timing`: how long the request queued.
    pub server_timing: bool,
}
