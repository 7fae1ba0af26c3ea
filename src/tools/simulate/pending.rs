//! A queue of requests in the order of the lines, so that the output keeps this order.
//!
//! A request leaves the queue when its outcome is known and all earlier requests have left. A
//! request that waits in the simulation has no outcome yet.

use std::collections::VecDeque;
use std::io;

use gateway::replay::{Line, Outcome};
use limit::Moment;

/// Maximum memory of the queue, in bytes.
pub(super) const MAX_BYTES: usize = 512 << 20;

/// A request, as the output names it.
pub(super) struct NamedRequest {
    /// Time in its line.
    pub(super) time: Moment,
    /// Its key, or the address of its client.
    pub(super) key: Option<Box<[u8]>>,
}

/// The queue, in the order of the lines.
pub(super) struct Pending {
    /// Number of the first request in the queue. Requests are numbered from 0 in order of lines.
    first: u64,
    /// Requests with their outcomes. `None`: not known yet. `Some(None)`: no route matches.
    requests: VecDeque<(NamedRequest, Option<Option<Outcome>>)>,
    /// Memory in use in bytes, and its maximum.
    bytes: usize,
    max_bytes: usize,
}

impl NamedRequest {
    /// Takes the key from the trace, else the key that the gateway logged, else the client.
    pub(super) fn of(line: &Line) -> Self {
        let recorded = line.recorded.as_ref();
        // The second element is the key; the first is the zone.
        let logged_key = || Some(recorded?.decided()?.1.into());
        let client = || Some(recorded?.client?.to_string().into_bytes().into());
        let key = line.key.as_deref().map(Box::from);
        Self {
            time: line.time,
            key: key.or_else(logged_key).or_else(client),
        }
    }

    /// Returns the memory that the request takes in the queue, in bytes.
    fn size(&self) -> usize {
        let key = self.key.as_ref().map_or(0, |key| key.len());
        size_of::<(Self, Option<Option<Outcome>>)>() + key
    }
}

impl Pending {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            first: 0,
            requests: VecDeque::new(),
            bytes: 0,
            max_bytes,
        }
    }

    /// Adds the next request.
    ///
    /// # Errors
    ///
    /// Returns an error if the requests behind one without an outcome need too much memory.
    pub(super) fn add(&mut self, request: NamedRequest) -> io::Result<()> {
        self.bytes += request.size();
        self.requests.push_back((request, None));
        if self.bytes <= self.max_bytes {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "{} requests arrived while one waited at a gate, more than fit into memory: replay a part of the trace, \
             or sort it by time",
            self.requests.len()
        )))
    }

    /// Sets the outcome of request `number`. It is `None` if no route matches the request.
    pub(super) fn set(&mut self, number: u64, outcome: Option<Outcome>) {
        let index = usize::try_from(number.saturating_sub(self.first));
        if let Some(request) = index.ok().and_then(|index| self.requests.get_mut(index)) {
            request.1 = Some(outcome);
        }
    }

    /// Removes the first request if its outcome is known.
    pub(super) fn take(&mut self) -> Option<(NamedRequest, Option<Outcome>)> {
        let outcome = self.requests.front()?.1?;
        let (request, _) = self.requests.pop_front()?;
        self.bytes -= request.size();
        self.first += 1;
        Some((request, outcome))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_takes_a_bounded_number_of_bytes() {
        let add = |pending: &mut Pending| {
            let request = NamedRequest {
                time: Moment::default(),
                key: Some([b'x'; 1000].into()),
            };
            pending.add(request)
        };
        let mut pending = Pending::new(1 << 20);
        // Requests with a known outcome leave the queue.
        for number in 0..10_000 {
            assert!(add(&mut pending).is_ok());
            pending.set(number, None);
            assert!(pending.take().is_some());
        }
        assert_eq!(pending.bytes, 0);
        let added = (0..10_000)
            .take_while(|_| add(&mut pending).is_ok())
            .count();
        // 1 MiB holds 1,048 keys of 1,000 bytes, and fewer with the memory besides the key.
        assert!((501..1049).contains(&added), "{added}");
        assert!(pending.take().is_none());
    }
}
