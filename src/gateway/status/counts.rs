//! Counts of metrics by label, such as `2xx`, as the API and the samples of each second show them.

use std::collections::BTreeMap;

use super::plain::Plain;
use crate::observe::metrics::{
    CodeClass, CountBy, LimitStatus, Outcome, RouteMetrics, ServerMetrics, ZoneMetrics,
};
use crate::zone::report::sample::Totals;

/// Status of a request whose client disconnected before a response began, as in nginx.
const CLIENT_DISCONNECTED: u16 = 499;

/// Numbers by label such as `2xx`, without zeros.
pub(crate) type Labelled = BTreeMap<Plain, u64>;

/// Responses of a server, by status class.
pub(crate) fn responses(server: &ServerMetrics) -> Labelled {
    labelled(server.responses.each())
}

/// Requests that a server did not answer, by kind.
pub(crate) fn errors(server: &ServerMetrics) -> Labelled {
    let outcomes = Outcome::ALL.into_iter();
    let errors = outcomes.filter(|outcome| *outcome != Outcome::Answered);
    labelled(errors.map(|outcome| (outcome.label(), server.counted(outcome))))
}

/// Responses to clients, by status class.
pub(crate) fn codes(route: &RouteMetrics) -> Labelled {
    let statuses = route.statuses();
    labelled(statuses.map(|(status, count)| (CodeClass::of(status).label(), count)))
}

/// Requests of a route whose client disconnected before a response began.
///
/// A response of an origin with this status counts here, too.
pub(crate) fn left(route: &RouteMetrics) -> u64 {
    let disconnected = route.statuses().filter(|it| it.0 == CLIENT_DISCONNECTED);
    disconnected.map(|(_, count)| count).sum()
}

/// Requests of a zone by outcome. `count`: number of requests with this outcome.
pub(crate) fn totals(count: impl Fn(LimitStatus) -> u64) -> Totals {
    Totals {
        passed: count(LimitStatus::Passed),
        delayed: count(LimitStatus::Delayed),
        rejected: count(LimitStatus::Rejected),
        cancelled: count(LimitStatus::Cancelled),
        rejected_elsewhere: count(LimitStatus::RejectedElsewhere),
        no_key: count(LimitStatus::NoKey),
        delayed_dry_run: count(LimitStatus::DelayedDryRun),
        rejected_dry_run: count(LimitStatus::RejectedDryRun),
    }
}

/// Collects counts by label, zeros included.
pub(crate) fn counted(counts: impl IntoIterator<Item = (&'static str, u64)>) -> Labelled {
    let counts = counts.into_iter();
    counts.map(|(label, count)| (label.into(), count)).collect()
}

/// Operations of a zone in the store, by result.
pub(crate) fn operations(zone: &ZoneMetrics) -> Labelled {
    labelled(zone.operations().into_iter().flat_map(CountBy::each))
}

/// Adds `more` to `sum`.
pub fn add(sum: &mut Labelled, more: &Labelled) {
    for (label, count) in more {
        *sum.entry(label.clone()).or_default() += count;
    }
}

/// Collects labelled counts without zeros.
fn labelled(counts: impl Iterator<Item = (&'static str, u64)>) -> Labelled {
    let mut sum = Labelled::new();
    for (label, count) in counts.filter(|(_, count)| *count > 0) {
        *sum.entry(label.into()).or_default() += count;
    }
    sum
}
