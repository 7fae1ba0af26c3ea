//! The batches that are under way, and the order of their answers.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::{Rc, Weak};

use tokio::sync::Notify;

use super::NoReply;
use super::ask::Ask;

/// The batches of joins that are under way, in the order in which they were sent.
///
/// Their answers may come in another order. A claim of a gate that is late ends the connection for
/// all who come later, while batches that were sent over it still wait for their answers. In a
/// cluster each node answers in its own time. So an answer waits until the earlier requests of its
/// key are answered: first in, first out.
#[derive(Default)]
pub(super) struct Carried {
    batches: RefCell<Vec<Weak<[Ask]>>>,
    /// Notifies the answers that wait for earlier ones.
    told: Notify,
}

/// Requests of a batch, each with what was answered to it.
type Answered<'a, T> = Vec<(&'a Ask, T)>;

impl Carried {
    pub fn add(&self, batch: &Rc<[Ask]>) {
        let mut batches = self.batches.borrow_mut();
        batches.retain(|other| other.strong_count() > 0);
        batches.push(Rc::downgrade(batch));
    }

    /// Some requests of earlier batches may be answered, or a batch is over.
    pub(super) fn note_told(&self) {
        self.told.notify_waiters();
    }

    /// Tells the batches under way that there is no decision, in order, while `is_abandoned`.
    pub(super) fn abandon(&self, is_abandoned: impl Fn(&Rc<[Ask]>) -> bool) {
        let carried = self.batches.borrow().clone();
        let batches = carried.iter().filter_map(Weak::upgrade);
        for batch in batches.take_while(is_abandoned) {
            batch.iter().for_each(|ask| ask.tell(Err(NoReply)));
        }
        self.note_told();
    }

    /// Calls `tell` for each request of a batch with what `answers` has for it, as soon as no
    /// earlier request of its key is unanswered.
    ///
    /// That is in time: requests of a key are sent in the order in which they joined, so an earlier
    /// one is answered or given up before a later one is late.
    pub(super) async fn tell_in_order<'a, T>(
        &self,
        batch: &'a Rc<[Ask]>,
        answers: Vec<T>,
        tell: impl Fn(&'a Ask, T),
    ) {
        let mut waiting: Answered<'_, T> = batch.iter().zip(answers).collect();
        loop {
            // Before the look at the earlier ones, so that no notification is missed.
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
                // Later batches may wait for these.
                self.note_told();
            } else {
                told.await;
            }
        }
    }

    /// Which of these requests of a batch have an earlier one of their key that is unanswered, and
    /// which have none.
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
