//! Rare properties of a request, such as its trace, its id, and a new session in a waiting room.
//!
//! Also corrects the charges of a request by its response. A *leader* is a request whose answer
//! other requests, its *followers*, wait for.

use std::time::Duration;

use config::Route;
use limit::{Cost, Moment};

use super::super::request_id::RequestId;
use super::super::request_info::RequestInfo;
use super::super::response_fields::RoomFields;
use super::super::rewrite;
use super::{Exception, RequestRecord};
use crate::http::exchange::cost::UsedAdmissions;
use crate::http::gateway::Gateway;
use crate::http::message::Put;
use crate::observe::metrics::SharedOutcome;
use crate::observe::spans::Trace;

/// Rare properties of a request. `trace` and `request_id` link it to other programs' records.
#[derive(Default)]
pub(super) struct RareProperties<'r> {
    /// `None` if no spans are sent: there is no collector, or the client does not sample the trace.
    trace: Option<Trace>,
    request_id: Option<RequestId<'r>>,
    /// Response fields of a new session in the waiting room.
    session: Option<RoomFields>,
    /// Time for which the request followed a leader before it continued alone.
    followed: Duration,
    /// Time in which the body was received, before the request joined its limits.
    receiving: Duration,
    /// Instant at which the client disconnected, if the request continued without it.
    disconnected_at: Option<Moment>,
}

impl<'r> RareProperties<'r> {
    /// Creates the properties of a new request: its trace and its id.
    ///
    /// A trusted peer may set the id.
    ///
    /// Boxed: most requests have none, and a waiting request must be small.
    pub(super) fn new(
        gateway: &'r Gateway,
        info: &'r RequestInfo<'r>,
        began: Moment,
    ) -> Option<Box<Self>> {
        let spans = gateway.spans();
        let trace = spans.and_then(|spans| spans.trace(info.fields().named("traceparent")));
        let name = gateway.settings().server.request_id.as_ref();
        let head = Some(info.head).filter(|_| info.client.via_proxy);
        let request_id = name.map(|name| RequestId::find_or_new(name, head, began));
        (trace.is_some() || request_id.is_some()).then(|| {
            Box::new(Self {
                trace,
                request_id,
                ..Self::default()
            })
        })
    }
}

impl<'r> RequestRecord<'r> {
    /// Records a new session in the waiting room. The response gets these fields.
    pub(in super::super) fn begin_session(&mut self, fields: RoomFields) {
        self.rare.get_or_insert_default().session = Some(fields);
    }

    /// Records that the request continues alone after it was a follower for this time.
    pub(in super::super) fn note_time_as_follower(&mut self, followed: Duration) {
        self.rare.get_or_insert_default().followed = followed;
    }

    /// Returns the time for which the request followed a leader before it continued alone.
    pub(in super::super) fn time_as_follower(&self) -> Duration {
        let rare = self.rare.as_ref();
        rare.map_or(Duration::ZERO, |rare| rare.followed)
    }

    /// Records that the body was received. The request joins its limits `now`.
    pub(in super::super) fn note_body_received(&mut self, now: Moment) {
        self.rare.get_or_insert_default().receiving = now.since(self.began);
        self.began = now;
    }

    /// Records that the client has disconnected, and that the request continues without it.
    pub(in super::super) fn continue_without_client(&mut self) {
        let now = self.now();
        let rare = self.rare.get_or_insert_default();
        rare.disconnected_at.get_or_insert(now);
    }

    /// Returns the instant at which the client disconnected, if the request continued without it.
    pub(super) fn disconnected_at(&self) -> Option<Moment> {
        self.rare.as_ref()?.disconnected_at
    }

    /// Returns the time in which the body was received, before the request joined its limits.
    pub(super) fn time_receiving(&self) -> Duration {
        let rare = self.rare.as_ref();
        rare.map_or(Duration::ZERO, |rare| rare.receiving)
    }

    /// Calls `each` to put the fields of a response, and adds the fields of a new session.
    pub(in super::super) fn put_with_session(&self, put: Put<'_>, each: impl FnOnce(Put<'_>)) {
        match self.rare.as_ref().and_then(|rare| rare.session.as_ref()) {
            None => each(put),
            Some(fields) => {
                // A cache in front of the gateway must not give the session to others.
                rewrite::put_uncached(put, each);
                fields.put(put);
            }
        }
    }

    /// Returns the name of the request id field, and the id, if ids are configured.
    pub(in super::super) fn request_id(&self) -> Option<(&'r str, &str)> {
        let id = self.rare.as_ref()?.request_id.as_ref()?;
        let name = self.gateway.settings().server.request_id.as_deref()?;
        Some((name, id.as_str()))
    }

    /// Returns the `traceparent` for the origin; `None` if the client's is forwarded unchanged.
    pub(in super::super) fn traceparent(&self) -> Option<String> {
        self.trace().map(Trace::traceparent)
    }

    /// Returns the trace of the request, if its spans are sent.
    pub(super) fn trace(&self) -> Option<&Trace> {
        self.rare.as_ref()?.trace.as_ref()
    }

    /// Records how the request got its answer, and counts it in the metrics of collapsing.
    pub(in super::super) fn count_shared(&mut self, outcome: SharedOutcome, origin: usize) {
        self.shared = outcome;
        if let Some(metrics) = self.gateway.collapse_metrics(origin) {
            metrics.requests.add(outcome, 1);
        }
    }

    /// Records that the answer is not shared with followers.
    pub(in super::super) fn stop_sharing(&mut self) {
        if self.shared == SharedOutcome::Leader {
            self.shared = SharedOutcome::Alone;
        }
    }

    /// Corrects the charge in the zones by the status and the reported cost of the response.
    ///
    /// Returns the reported cost if it differs from the charge.
    pub(in super::super) fn settle(
        &mut self,
        route: &Route,
        status: u16,
        billed: Option<Cost>,
        used: &mut UsedAdmissions<'_>,
    ) -> Option<Cost> {
        let billed = billed.filter(|cost| *cost != self.cost);
        if let Some(cost) = billed {
            self.cost = cost;
        }
        if route.refund.iter().any(|it| it.has(status)) {
            self.exception = Exception::Refunded;
            used.refund();
        } else if let Some(cost) = billed {
            used.settle(cost);
        }
        billed
    }

    /// Corrects the charge in the zones by the measured work of the origin.
    ///
    /// Returns whether the charge has changed.
    pub(in super::super) fn settle_work(
        &mut self,
        cost: Cost,
        used: &mut UsedAdmissions<'_>,
    ) -> bool {
        if cost == self.cost {
            return false;
        }
        self.cost = cost;
        if self.exception != Exception::Refunded {
            used.settle(cost);
        }
        true
    }
}
