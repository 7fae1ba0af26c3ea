//! What is kept of a line until its outcome is known.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;

use gateway::replay::{Line, Outcome, ReplayAdmission};
use limit::Moment;

/// The most bytes that requests take whose outcome is not known yet, and those behind them.
const MAX_BYTES: usize = 512 << 20;

/// A request as the output names it.
pub(super) struct NamedRequest<'a> {
    /// The time on its line.
    pub(super) time: Moment,
    pub(super) by: Name<'a>,
}

/// Who sent a request.
pub(super) enum Name<'a> {
    Key(Cow<'a, [u8]>),
    Client(IpAddr),
    Unknown,
}

/// The requests whose outcome is not known yet, and those that came after the first of them.
///
/// The output is in the order of the lines.
pub(super) struct Pending {
    /// The number of the first of them.
    first: u64,
    requests: VecDeque<Request>,
    /// What they take, in bytes, and the most that they may take.
    bytes: usize,
    max_bytes: usize,
}

struct Request {
    asked: NamedRequest<'static>,
    /// What is known of it under each file.
    judged: Box<[ReplayAdmission]>,
}

impl<'a> NamedRequest<'a> {
    pub(super) fn of(line: &'a Line) -> Self {
        let recorded = line.recorded.as_ref();
        let client = recorded.and_then(|recorded| recorded.client);
        let decided = || Some(recorded?.decided()?.1);
        let key = line.key.as_deref().map(Cow::Borrowed).or_else(decided);
        let by = match (key, client) {
            (Some(key), _) => Name::Key(key),
            (None, Some(client)) => Name::Client(client),
            (None, None) => Name::Unknown,
        };
        Self {
            time: line.time,
            by,
        }
    }

    fn into_owned(self) -> NamedRequest<'static> {
        let by = match self.by {
            Name::Key(key) => Name::Key(Cow::Owned(key.into_owned())),
            Name::Client(client) => Name::Client(client),
            Name::Unknown => Name::Unknown,
        };
        NamedRequest {
            time: self.time,
            by,
        }
    }
}

impl Request {
    /// What it takes, in bytes.
    fn size(&self) -> usize {
        let key = match &self.asked.by {
            Name::Key(key) => key.len(),
            Name::Client(_) | Name::Unknown => 0,
        };
        size_of::<Self>() + key + size_of_val(&*self.judged)
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

    /// The number of the next request.
    pub(super) fn next_number(&self) -> u64 {
        self.first + self.requests.len() as u64
    }

    /// Adds the next request, with what is known of it under each file.
    ///
    /// # Errors
    ///
    /// Returns an error if too many requests are behind one whose outcome is not known.
    pub fn add(
        &mut self,
        asked: NamedRequest,
        judged: impl Iterator<Item = ReplayAdmission>,
    ) -> io::Result<()> {
        let request = Request {
            asked: asked.into_owned(),
            judged: judged.collect(),
        };
        self.bytes += request.size();
        self.requests.push_back(request);
        if self.bytes <= self.max_bytes {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "{} requests came while one waited at a gate, more than can be remembered: replay a part of the trace, or \
             put its times into order",
            self.requests.len()
        )))
    }

    /// The outcome of request `number` under file number `nth`.
    pub(super) fn set(&mut self, number: u64, nth: usize, outcome: Outcome) {
        let index = usize::try_from(number.saturating_sub(self.first));
        let request = index.ok().and_then(|index| self.requests.get_mut(index));
        if let Some(judged) = request.and_then(|request| request.judged.get_mut(nth)) {
            *judged = ReplayAdmission::Known(outcome);
        }
    }

    /// Takes the first request if all its outcomes are known. They go to `outcomes`.
    pub(super) fn take(
        &mut self,
        outcomes: &mut Vec<Option<Outcome>>,
    ) -> Option<NamedRequest<'static>> {
        let first = self.requests.front()?;
        if first.judged.contains(&ReplayAdmission::Waits) {
            return None;
        }
        let request = self.requests.pop_front()?;
        self.bytes -= request.size();
        self.first += 1;
        outcomes.clear();
        outcomes.extend(request.judged.iter().map(|judged| judged.outcome()));
        Some(request.asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_takes_a_bounded_number_of_bytes() {
        let key = [b'x'; 1000];
        let asked = || NamedRequest {
            time: Moment::default(),
            by: Name::Key(Cow::Borrowed(&key)),
        };
        let add = |pending: &mut Pending, judged| pending.add(asked(), std::iter::once(judged));
        let mut pending = Pending::of_at_most(1 << 20);
        // Those whose outcome is known leave.
        for _ in 0..10_000 {
            assert!(add(&mut pending, ReplayAdmission::Unrouted).is_ok());
            assert!(pending.take(&mut Vec::new()).is_some());
        }
        assert_eq!(pending.bytes, 0);
        assert!(add(&mut pending, ReplayAdmission::Waits).is_ok());
        let added = (0..10_000)
            .take_while(|_| add(&mut pending, ReplayAdmission::Unrouted).is_ok())
            .count();
        assert!((500..1048).contains(&added), "{added}");
    }
}
