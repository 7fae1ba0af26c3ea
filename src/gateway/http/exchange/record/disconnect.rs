//! Counts requests whose client disconnected: for the zone, the gate or the origin it waited for.
//!
//! A *zone* limits the rate of each key. The *gate* limits all requests to an origin.

use config::Route;
use limit::Moment;

use super::{CLIENT_DISCONNECTED, RequestRecord};
use crate::http::exchange::gate_progress::GateProgress;
use crate::http::exchange::limits::LimitOutcome;

impl RequestRecord<'_> {
    /// Counts a client that disconnected before a response began.
    pub(super) fn count_disconnect(&self, now: Moment) {
        if let Some((zone, _)) = self.limited.waiting() {
            let zone = self.gateway.zone(zone);
            zone.metrics().disconnects.record(now.since(self.began));
            return;
        }
        // An origin may answer with this status itself.
        if self.status != CLIENT_DISCONNECTED || self.is_answered {
            return;
        }
        let Some(origin) = self.route().and_then(Route::origin) else {
            return;
        };
        let origin = self.gateway.origin(origin);
        match (&self.at_gate, origin.gate()) {
            (Some(GateProgress::Waiting(since)), Some(gate)) => {
                gate.metrics().disconnects.record(now.since(*since));
            }
            // The request waits for an origin that cannot be reached: this is not counted.
            (Some(GateProgress::Held(_)), _) => {}
            _ => self.count_disconnect_at_origin(now),
        }
    }

    /// Counts a client that disconnected after its request was sent to the origin.
    ///
    /// The count goes to the longest wait: at the origin, at its gate, or in the zones. A client
    /// that was admitted just before it gave up did not disconnect because of the origin. A request
    /// whose upload was not complete is not counted.
    fn count_disconnect_at_origin(&self, now: Moment) {
        let since = self.awaited_since;
        let origin = self.route().and_then(Route::origin);
        let Some(origin) = origin.filter(|_| since != Moment::default()) else {
            return;
        };
        let origin = self.gateway.origin(origin);
        let (in_zones, at_origin) = (self.waited(), now.since(since));
        let at_gate = self.waited_at_gate(|| now).unwrap_or_default();
        let decisive = self.outcome().and_then(LimitOutcome::decisive);
        if at_origin >= in_zones + at_gate {
            origin.record_disconnect(at_origin);
        } else if let Some(gate) = origin.gate()
            && at_gate >= in_zones
        {
            gate.metrics().disconnects.record(at_gate);
        } else if let Some(verdict) = decisive {
            let zone = self.gateway.zone(verdict.limit.zone);
            zone.metrics().disconnects.record_quantile(in_zones);
        }
    }
}
