//! A queue of requests whose outcome is not known yet, and of the requests behind them.
//!
//! The queue keeps the output in the order of the lines.

use std::collections::VecDeque;
use std::io;

use gateway::replay::{Line, Outcome, ReplayAdmission};
use limit::Moment;

/// Maximum memory of the queue, in bytes.
const MAX_BYTES: usize = 512 << 20;

/// A request, as the output names it.
pub(super) struct NamedRequest {
    /// Time on its line.
    pub(super) time: Moment,
    /// Its key, or the address of its client.
    pub(super) key: Option<Box<[u8]>>,
}

pub(super) struct Pending {
    /// Number of the first request in the queue.
    first: u64,
    requests: VecDeque<(NamedRequest, ReplayAdmission)>,
    /// Memory in use in bytes, and its maximum.
    bytes: usize,
    max_bytes: usize,
}

impl NamedRequest {
    pub(super) fn of(line: &Line) -> Self {
        let recorded = line.recorded.as_ref();
        let decided = || Some(recorded?.decided()?.1.into());
        let client = || Some(recorded?.client?.to_string().into_bytes().into());
        let key = line.key.as_deref().map(Box::from);
        Self {
            time: line.time,
            key: key.or_else(decided).or_else(client),
        }
    }

    /// Returns the memory that the request takes in the queue, in bytes.
    fn size(&self) -> usize {
        let key = self.key.as_ref().map_or(0, |key| key.len());
        size_of::<(Self, ReplayAdmission)>() + key
    }
}

impl Pending {
    pub(super) fn new() -> Self {
        Self::of_at_most(MAX_BYTES)
    }

    fn of_at_most(max_bytes: usize) -> Self {
        Self {
            first: 0,
            requests: VecDeque::new(),
            bytes: 0,
            max_bytes,
        }
    }

    /// Returns the number of the next request.
    pub(super) fn next_number(&self) -> u64 {
        self.first + self.requests.len() as u64
    }

    /// Adds the next request.
    ///
    /// # Errors
    ///
    /// Returns an error if too many requests are behind one whose outcome is not known.
    pub(super) fn add(
        &mut self,
        request: NamedRequest,
        admission: ReplayAdmission,
    ) -> io::Result<()> {
        self.bytes += request.size();
        self.requests.push_back((request, admission));
        if self.bytes <= self.max_bytes {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "{} requests arrived while one waited at a gate, more than fit into memory: replay a part of the trace, \
             or sort it by time",
            self.requests.len()
        )))
    }

    /// Sets the outcome of request `number`.
    pub(super) fn set(&mut self, number: u64, outcome: Outcome) {
        let index = usize::try_from(number.saturating_sub(self.first));
        if let Some(request) = index.ok().and_then(|index| self.requests.get_mut(index)) {
            request.1 = ReplayAdmission::Known(outcome);
        }
    }

    /// Removes the first request if its outcome is known.
    ///
    /// The outcome is `None` if no route matches.
    pub(super) fn take(&mut self) -> Option<(NamedRequest, Option<Outcome>)> {
        if self.requests.front()?.1 == ReplayAdmission::Waits {
            return None;
        }
        let (request, admission) = self.requests.pop_front()?;
        self.bytes -= request.size();
        self.first += 1;
        Some((request, admission.outcome()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_takes_a_bounded_number_of_bytes() {
        let add = |pending: &mut Pending, admission| {
            let request = NamedRequest {
                time: Moment::default(),
                key: Some([b'x'; 1000].into()),
            };
            pending.add(request, admission)
        };
        let mut pending = Pending::of_at_most(1 << 20);
        // Requests with a known outcome leave the queue.
        for _ in 0..10_000 {
            assert!(add(&mut pending, ReplayAdmission::Unrouted).is_ok());
            assert!(pending.take().is_some());
        }
        assert_eq!(pending.bytes, 0);
        assert!(add(&mut pending, ReplayAdmission::Waits).is_ok());
        let added = (0..10_000)
            .take_while(|_| add(&mut pending, ReplayAdmission::Unrouted).is_ok())
            .count();
        assert!((500..1048).contains(&added), "{added}");
    }
}
