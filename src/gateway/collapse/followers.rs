//! Queue of followers: the requests that wait for the answer to one leader, in order of arrival.

use std::collections::VecDeque;

/// Properties of a request that decide whether it may lead.
#[derive(Clone, Copy, Debug)]
pub struct Requester {
    /// Hash of the client. Two clients rarely have the same one.
    pub client: u64,
    /// Whether the answer to this request may be shared with other requests.
    pub may_lead: bool,
}

/// Queue of the followers of one leader, in order of arrival.
///
/// `W` is a waiter: the sender of a follower's result. A request that leaves only marks its entry,
/// so that joining and answering cost no more than in a plain queue. Marked entries are dropped
/// when there are more of them than waiters.
pub(super) struct Followers<W> {
    /// Entries in ascending order of their numbers.
    queue: VecDeque<Follower<W>>,
    /// Number of entries that have not left.
    waiting: usize,
}

/// Number of marked entries that a queue keeps, however few requests wait.
const MIN_MARKED: usize = 8;

/// Entry of the queue.
struct Follower<W> {
    number: u64,
    /// Waiter of the entry; `None` marks an entry whose request has left.
    waiter: Option<W>,
    requester: Requester,
}

impl<W> Default for Followers<W> {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
            waiting: 0,
        }
    }
}

impl<W> Followers<W> {
    /// Returns whether no request waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Adds a waiter. `number` must be above the numbers of all earlier ones.
    pub(super) fn push(&mut self, number: u64, waiter: W, requester: Requester) {
        self.waiting += 1;
        self.queue.push_back(Follower {
            number,
            waiter: Some(waiter),
            requester,
        });
    }

    /// Removes and returns the first waiter.
    pub(super) fn pop_first(&mut self) -> Option<W> {
        // Drops the marked entries before it, too.
        let first = std::iter::from_fn(|| self.queue.pop_front()).find_map(|it| it.waiter);
        self.waiting -= usize::from(first.is_some());
        first
    }

    /// Removes the first waiter that may lead. Returns its number, its client, and the waiter.
    ///
    /// Prefers a request of a client other than `avoided`.
    pub(super) fn pop_leader(&mut self, avoided: Option<u64>) -> Option<(u64, u64, W)> {
        let may_lead = |it: &Follower<W>| it.requester.may_lead && it.waiter.is_some();
        let is_other = |it: &Follower<W>| may_lead(it) && Some(it.requester.client) != avoided;
        let other = self.queue.iter().position(is_other);
        let index = other.or_else(|| self.queue.iter().position(may_lead))?;
        let leader = self.queue.get_mut(index)?;
        let (number, client) = (leader.number, leader.requester.client);
        let waiter = leader.waiter.take()?;
        self.note_removed();
        Some((number, client, waiter))
    }

    /// Removes the waiter with this number. Returns whether it was there.
    pub(super) fn remove(&mut self, number: u64) -> bool {
        let found = self.queue.binary_search_by_key(&number, |it| it.number);
        let follower = found.ok().and_then(|index| self.queue.get_mut(index));
        let removed = follower.and_then(|it| it.waiter.take());
        if removed.is_some() {
            self.note_removed();
        }
        removed.is_some()
    }

    /// Returns all waiters, in order of arrival.
    pub(super) fn into_waiters(self) -> Vec<W> {
        self.queue.into_iter().filter_map(|it| it.waiter).collect()
    }

    /// Counts a removed waiter, and drops the marked entries if there are too many.
    fn note_removed(&mut self) {
        self.waiting -= 1;
        if self.queue.len() > 2 * self.waiting + MIN_MARKED {
            self.queue.retain(|it| it.waiter.is_some());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requester(client: u64, may_lead: bool) -> Requester {
        Requester { client, may_lead }
    }

    #[test]
    fn removed_followers_are_skipped_and_soon_take_no_space() {
        let mut followers = Followers::default();
        for number in 1..=1000 {
            followers.push(number, number, requester(1, number % 2 == 0));
        }
        assert!((4..=997).all(|number| followers.remove(number)));
        assert!(!followers.remove(4));
        assert!(!followers.remove(1001));
        assert!(followers.queue.len() <= 2 * 6 + 8);
        assert_eq!(followers.pop_leader(None), Some((2, 1, 2)));
        assert_eq!(followers.pop_first(), Some(1));
        assert_eq!(followers.pop_first(), Some(3));
        assert!(followers.remove(998));
        assert!(!followers.is_empty());
        followers.push(1001, 1001, requester(1, true));
        assert_eq!(followers.into_waiters(), [999, 1000, 1001]);
    }

    #[test]
    fn a_follower_of_another_client_leads_first() {
        let mut followers = Followers::default();
        for (number, client, may_lead) in [(1, 7, true), (2, 8, false), (3, 7, true), (4, 9, true)]
        {
            followers.push(number, (), requester(client, may_lead));
        }
        assert_eq!(followers.pop_leader(Some(7)), Some((4, 9, ())));
        assert_eq!(followers.pop_leader(Some(7)), Some((1, 7, ())));
        assert_eq!(followers.pop_leader(Some(9)), Some((3, 7, ())));
        assert_eq!(followers.pop_leader(None), None);
    }
}
