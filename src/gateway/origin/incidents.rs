use std::sync::{Mutex, MutexGuard, PoisonError};

use limit::Moment;

use super::failure_kind::FailureKind;

/// What happened last at a server, for people.
///
/// Failures and checks take its lock; a request that succeeds does not.
#[derive(Debug, Default)]
pub(super) struct Incidents(Mutex<Past>);

#[derive(Debug, Default)]
pub(super) struct Past {
    pub(super) last_failure: Option<Failure>,
    pub(super) last_check: Option<LastCheck>,
    /// When failed requests took it out, the last time that they did.
    pub(super) out_by_failures: Option<Moment>,
    /// The same for its checks.
    pub(super) out_by_checks: Option<Moment>,
}

/// A request that a server did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// When it failed.
    pub at: Moment,
    /// When the first failure of this kind was after which the server has given no good answer.
    pub since: Moment,
    /// Its kind.
    pub kind: FailureKind,
    /// Why.
    pub text: String,
}

/// The last health check of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastCheck {
    /// When it ended.
    pub at: Moment,
    /// What was answered, or why the server is not healthy.
    pub found: Result<String, String>,
}

/// Whether a server gets requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// It gets requests, and nothing is known against it.
    InUse,
    /// It gets requests, although its last request or check failed.
    Failing,
    /// It gets no requests.
    Out(Outage),
}

/// Why a server is out, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// When it was taken out.
    pub since: Moment,
    /// What took it out.
    pub by: OutBy,
}

/// What has taken a server out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutBy {
    /// Failed requests; it is asked again at this moment.
    Failures(Moment),
    /// Health checks, until enough of them succeed.
    Checks,
}

impl Availability {
    /// The name in the API.
    pub fn label(self) -> &'static str {
        match self {
            Self::InUse => "asked",
            Self::Failing => "failing",
            Self::Out(_) => "out",
        }
    }
}

impl OutBy {
    /// The name in the API.
    pub fn label(self) -> &'static str {
        match self {
            Self::Failures(_) => "failures",
            Self::Checks => "checks",
        }
    }
}

impl Incidents {
    pub(super) fn lock(&self) -> MutexGuard<'_, Past> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
