//! Metrics that many tests read.

use super::{Gateway, eventually};

impl Gateway {
    /// Returns a metric of the zone `z`, as a whole number.
    pub fn zone(&self, name: &str) -> i64 {
        self.count(name, &[("zone", "z")])
    }

    /// Returns the number of requests of a zone with this status.
    pub fn zone_requests(&self, zone: &str, status: &str) -> i64 {
        self.count(
            "drip_zone_requests_total",
            &[("zone", zone), ("status", status)],
        )
    }

    /// Returns the number of requests that a zone rejected for this reason.
    pub fn zone_rejections(&self, zone: &str, reason: &str) -> i64 {
        self.count(
            "drip_zone_rejections_total",
            &[("zone", zone), ("reason", reason)],
        )
    }

    /// Returns the number of requests of a route that got this status code.
    pub fn requests(&self, route: &str, code: &str) -> i64 {
        self.count("drip_requests_total", &[("route", route), ("code", code)])
    }

    /// Returns the number of requests that the gate of `app` rejected for this reason.
    pub fn gate_rejections(&self, reason: &str) -> i64 {
        let labels = [("origin", "app"), ("reason", reason)];
        self.count("drip_origin_rejections_total", &labels)
    }

    /// Returns the number of requests of `[routes.collapse]` with this outcome.
    ///
    /// Outcomes are `leader`, `follower`, `kept`, `stale`, `alone` and `refresh`.
    pub fn shared(&self, outcome: &str) -> i64 {
        let labels = [("origin", "app"), ("outcome", outcome)];
        self.count("drip_shared_requests_total", &labels)
    }

    /// Returns the number of bytes of bodies in buffers.
    pub fn buffered(&self) -> usize {
        let bytes = self.count("drip_body_buffer_bytes", &[]);
        usize::try_from(bytes).expect("a count")
    }

    /// Returns the number of requests at origins.
    pub fn in_flight(&self) -> i64 {
        self.count("drip_origin_in_flight", &[])
    }

    /// Waits until this many requests are at origins.
    pub fn wait_in_flight(&self, count: i64) {
        eventually(&format!("{count} requests are at origins"), || {
            self.in_flight() == count
        });
    }

    /// Waits until this many requests wait in the zone `z`.
    pub fn wait_for_depth(&self, depth: i64) {
        eventually(&format!("{depth} wait"), || {
            self.zone("drip_zone_queue_depth") == depth
        });
    }

    /// Waits until this many requests wait at gates.
    pub fn wait_at_gate(&self, depth: i64) {
        eventually(&format!("{depth} wait at a gate"), || {
            self.count("drip_origin_queue_depth", &[]) == depth
        });
    }
}
