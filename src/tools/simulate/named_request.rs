//! What is kept of a line until its outcome is known.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::net::IpAddr;

use crate::limit::Moment;
use crate::replay::{Line, Outcome, ReplayAdmission};

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
#[derive(Default)]
pub(super) struct Pending {
    /// The number of the first of them.
    first: u64,
    requests: VecDeque<Request>,
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

impl Pending {
    /// The number of the next request.
    pub(super) fn next_number(&self) -> u64 {
        self.first + self.requests.len() as u64
    }

    /// Adds the next request, with what is known of it under each file.
    pub(super) fn add(
        &mut self,
        asked: NamedRequest,
        judged: impl Iterator<Item = ReplayAdmission>,
    ) {
        self.requests.push_back(Request {
            asked: asked.into_owned(),
            judged: judged.collect(),
        });
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
        self.first += 1;
        outcomes.clear();
        outcomes.extend(request.judged.iter().map(|judged| judged.outcome()));
        Some(request.asked)
    }
}
