use limit::{Cost, Limit};

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
    pub fn costing(self, cost: Option<Cost>) -> Self {
        let cost = cost.unwrap_or(self.limit.cost);
        let limit = Limit { cost, ..self.limit };
        Self { limit, ..self }
    }
}
