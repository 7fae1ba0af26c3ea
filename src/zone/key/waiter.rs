use std::num::NonZeroU32;

use tokio::sync::oneshot;

use super::super::answer::Answer;
use crate::limit::{self, Excess, Limit, Moment, Onward, Ticket};

/// A request that waits for its turn.
pub(super) struct Waiter {
    pub(super) since: Moment,
    pub(super) limit: Limit,
    pub(super) excess: Excess,
    pub(super) ticket: Ticket,
    pub(super) onward: Option<Onward>,
    pub(super) reply: oneshot::Sender<Answer>,
}

impl Waiter {
    /// Adopts what has become of the number that bounds the running requests.
    pub(super) fn change_in_flight(&mut self, changes: &[(NonZeroU32, NonZeroU32)]) {
        let in_flight = &mut self.limit.in_flight;
        *in_flight = in_flight.map(|most| limit::changed(most, changes));
    }
}
