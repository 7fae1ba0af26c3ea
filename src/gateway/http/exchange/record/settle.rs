//! What the answer to a request makes of its charges.

use config::Route;
use limit::Cost;

use super::{Exception, RequestRecord};
use crate::http::exchange::cost::UsedTurns;

impl RequestRecord<'_> {
    /// Settles what the request was charged in its zones, by the status of its answer and by what
    /// the answer says that it costs.
    ///
    /// Returns that cost if it is another one than was charged.
    pub(in crate::http::exchange) fn settle(
        &mut self,
        route: &Route,
        status: u16,
        billed: Option<Cost>,
        used: &mut UsedTurns<'_>,
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

    /// Settles what the request was charged in its zones by how long it took its origin.
    ///
    /// Returns whether it was charged something else.
    pub(in crate::http::exchange) fn settle_work(
        &mut self,
        cost: Cost,
        used: &mut UsedTurns<'_>,
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
