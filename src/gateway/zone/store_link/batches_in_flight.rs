//! Batches of charges in flight, and the order in which their requests are answered.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::{Rc, Weak};

use tokio::sync::Notify;

use super::NoReply;
use super::charge_request::ChargeRequest;

/// Batches of charges in flight, in the order in which they were sent.
///
/// Answers may come in another order. The connection to Redis is replaced after a timeout of any
/// caller, while earlier batches still wait on the old one. And each node of a Redis Cluster
/// answers at its own speed. So an answer waits until the earlier requests of its key are answered:
/// first in, first out.
#[derive(Default)]
pub(super) struct BatchesInFlight {
    /// Weak, because a batch leaves this list when the task that has sent it drops it.
    batches: RefCell<Vec<Weak<[ChargeRequest]>>>,
    /// Wakes answers that wait for earlier ones.
    answered: Notify,
}

/// Requests of a batch, each with its answer.
type Answered<'a, T> = Vec<(&'a ChargeRequest, T)>;

impl BatchesInFlight {
    /// Adds a batch in flight.
    pub(super) fn add(&self, batch: &Rc<[ChargeRequest]>) {
        let mut batches = self.batches.borrow_mut();
        batches.retain(|other| other.strong_count() > 0);
        batches.push(Rc::downgrade(batch));
    }

    /// Notifies that requests of earlier batches may be answered, or that a batch has ended.
    pub(super) fn notify_answered(&self) {
        self.answered.notify_waiters();
    }

    /// Answers the batches in flight with [`NoReply`], in order, while `is_abandoned` returns true.
    pub(super) fn abandon(&self, is_abandoned: impl Fn(&Rc<[ChargeRequest]>) -> bool) {
        let all = self.batches.borrow().clone();
        let batches = all.iter().filter_map(Weak::upgrade);
        for batch in batches.take_while(is_abandoned) {
            for request in batch.iter() {
                request.respond(Err(NoReply));
            }
        }
        self.notify_answered();
    }

    /// Calls `respond` for each request and its answer once its key's earlier requests are
    /// answered.
    ///
    /// No answer is delayed for too long: a key's requests are sent in the order of their joins. So
    /// an earlier request is answered or given up before a later one times out.
    pub(super) async fn respond_in_order<'a, T>(
        &self,
        batch: &'a Rc<[ChargeRequest]>,
        answers: Vec<T>,
        respond: impl Fn(&'a ChargeRequest, T),
    ) {
        let mut waiting: Answered<'_, T> = batch.iter().zip(answers).collect();
        loop {
            // Created before the earlier requests are examined, so that no notification is missed.
            let answered = self.answered.notified();
            let (behind, first) = self.split_behind_others(batch, waiting);
            let has_answered = !first.is_empty();
            for (request, answer) in first {
                respond(request, answer);
            }
            if behind.is_empty() {
                return;
            }
            waiting = behind;
            if has_answered {
                // Later batches may wait for these answers.
                self.notify_answered();
            } else {
                answered.await;
            }
        }
    }

    /// Splits requests of a batch by whether an earlier request of the same key is unanswered.
    fn split_behind_others<'a, T>(
        &self,
        batch: &Rc<[ChargeRequest]>,
        requests: Answered<'a, T>,
    ) -> (Answered<'a, T>, Answered<'a, T>) {
        let batches = self.batches.borrow();
        let batches = batches.iter().filter_map(Weak::upgrade);
        let earlier: Vec<_> = batches
            .take_while(|other| !Rc::ptr_eq(other, batch))
            .collect();
        let earlier = earlier.iter().flat_map(|other| other.iter());
        // Only joins are answered in order: no request waits for another charge, such as the
        // correction of a cost.
        let unanswered = earlier.filter(|request| request.is_unanswered_join());
        let unanswered: HashSet<&[u8]> = unanswered.map(|it| &it.key.name[..]).collect();
        let is_behind = |request: &ChargeRequest| unanswered.contains(&request.key.name[..]);
        requests
            .into_iter()
            .partition(|(request, _)| is_behind(request))
    }
}

#[cfg(test)]
mod tests;
