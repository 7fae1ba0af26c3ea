//! Latest failed request and health check of a server, and since when it is out, for the API.
//!
//! A server that is *out* gets no requests. `health` decides that.

use limit::Moment;

use super::failure_kind::FailureKind;

/// Latest incidents of a server.
///
/// They are behind a lock of the server. Failures and checks take the lock; a successful request
/// does not.
#[derive(Debug, Default)]
pub(super) struct Incidents {
    /// `None`: no request has failed.
    pub(super) last_failure: Option<Failure>,
    /// `None`: no health check has ended.
    pub(super) last_check: Option<LastCheck>,
    /// Instant at which failed requests last took the server out.
    pub(super) out_by_failures: Option<Moment>,
    /// Instant at which health checks last took the server out.
    pub(super) out_by_checks: Option<Moment>,
}

/// Request that a server did not answer, or answered with a failing response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Instant of the failure.
    pub at: Moment,
    /// Instant of the first failure of this kind since the server's last good answer.
    pub since: Moment,
    /// Kind of the failure.
    pub kind: FailureKind,
    /// Reason of the failure, as text.
    pub text: String,
}

/// Last health check of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastCheck {
    /// Instant at which the check ended.
    pub at: Moment,
    /// Answer of the server, or the reason for which it is not healthy.
    pub found: Result<String, String>,
}

/// Availability of a server: whether it gets requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// Gets requests, and nothing is known against it.
    InUse,
    /// Gets requests, although its last request or check failed.
    Failing,
    /// Gets no requests since this instant, for this cause.
    Out(Moment, OutBy),
}

/// Cause for which a server is out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutBy {
    /// Failed requests. The server gets requests again at this instant.
    Failures(Moment),
    /// Health checks, until enough of them succeed.
    Checks,
}

impl Availability {
    /// Returns the name in the API.
    pub fn label(self) -> &'static str {
        match self {
            Self::InUse => "in_use",
            Self::Failing => "failing",
            Self::Out(..) => "out",
        }
    }
}

impl OutBy {
    /// Returns the name in the API.
    pub fn label(self) -> &'static str {
        match self {
            Self::Failures(_) => "failures",
            Self::Checks => "checks",
        }
    }
}
