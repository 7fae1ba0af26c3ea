//! Batches of joins in flight, and the order of their answers.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::{Rc, Weak};

use tokio::sync::Notify;

use super::NoReply;
use super::ask::Ask;

/// Batches of joins in flight, in the order in which they were sent.
///
/// Their answers may come in another order. A late claim of a gate ends the connection for later
/// operations, while earlier batches on it still wait for their answers. In a cluster each node
/// answers at its own speed. So an answer waits until the earlier requests of its key are answered:
/// first in, first out.
#[derive(Default)]
pub(super) struct Carried {
    batches: RefCell<Vec<Weak<[Ask]>>>,
    /// Wakes answers that wait for earlier ones.
    told: Notify,
}

/// Requests of a batch with their answers.
type Answered<'a, T> = Vec<(&'a Ask, T)>;

impl Carried {
    /// Adds a batch in flight.
    pub fn add(&self, batch: &Rc<[Ask]>) {
        let mut batches = self.batches.borrow_mut();
        batches.retain(|other| other.strong_count() > 0);
        batches.push(Rc::downgrade(batch));
    }

    /// Notifies that requests of earlier batches may be answered, or that a batch has ended.
    pub(super) fn note_told(&self) {
        self.told.notify_waiters();
    }

    /// Answers the batches in flight with [`NoReply`], in order, while `is_abandoned` returns true.
    pub(super) fn abandon(&self, is_abandoned: impl Fn(&Rc<[Ask]>) -> bool) {
        let carried = self.batches.borrow().clone();
        let batches = carried.iter().filter_map(Weak::upgrade);
        for batch in batches.take_while(is_abandoned) {
            batch.iter().for_each(|ask| ask.tell(Err(NoReply)));
        }
        self.note_told();
    }

    /// Calls `tell` for each request and its answer once its key's earlier requests are answered.
    ///
    /// This never delays an answer too long: a key's requests are sent in the order of their joins,
    /// so an earlier request is answered or given up before a later one times out.
    pub(super) async fn tell_in_order<'a, T>(
        &self,
        batch: &'a Rc<[Ask]>,
        answers: Vec<T>,
        tell: impl Fn(&'a Ask, T),
    ) {
        let mut waiting: Answered<'_, T> = batch.iter().zip(answers).collect();
        loop {
            // Before looking at earlier requests, so that no notification is missed.
            let told = self.told.notified();
            let (behind, next) = self.behind_others(batch, waiting);
            let has_told = !next.is_empty();
            for (ask, answer) in next {
                tell(ask, answer);
            }
            if behind.is_empty() {
                return;
            }
            waiting = behind;
            if has_told {
                // Later batches may wait for these answers.
                self.note_told();
            } else {
                told.await;
            }
        }
    }

    /// Splits requests of a batch by whether an earlier request of the same key is unanswered.
    fn behind_others<'a, T>(
        &self,
        batch: &Rc<[Ask]>,
        asks: Answered<'a, T>,
    ) -> (Answered<'a, T>, Answered<'a, T>) {
        let batches = self.batches.borrow();
        let batches = batches.iter().filter_map(Weak::upgrade);
        let earlier: Vec<_> = batches
            .take_while(|other| !Rc::ptr_eq(other, batch))
            .collect();
        let earlier = earlier.iter().flat_map(|other| other.iter());
        let unanswered = earlier.filter(|ask| ask.is_open_join());
        let unanswered: HashSet<&[u8]> = unanswered.map(|ask| &ask.key.name[..]).collect();
        asks.into_iter()
            .partition(|(ask, _)| unanswered.contains(&ask.key.name[..]))
    }
}

#[cfg(test)]
mod tests;
