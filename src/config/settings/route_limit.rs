//! A limit of a route.

use limit::{Cost, Limit};

/// One limit of a route, in one zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteLimit {
    /// Index in [`super::Settings::zones`].
    pub zone: usize,
    /// Values of the limit.
    ///
    /// `delay` is never above `burst`. `max_wait` is that of the route. `cost` is that of a request
    /// about which nothing is known.
    pub limit: Limit,
}

impl RouteLimit {
    /// Returns the limit for a request of this cost, if the cost is known.
    pub fn costing(self, cost: Option<Cost>) -> Self {
        let cost = cost.unwrap_or(self.limit.cost);
        let limit = Limit { cost, ..self.limit };
        Self { limit, ..self }
    }
}
