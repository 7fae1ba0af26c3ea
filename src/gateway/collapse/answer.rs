//! Complete answer: a response of an origin, as several requests share it.

use std::sync::Arc;
use std::time::Duration;

use config::Collapse;
use limit::{Cost, Moment};

use super::memory::{AnswerBody, Charge};
use super::terms::{Terms, Windows};

/// Bytes of memory of an answer beside its text: the entry in the table, its key, and the structs.
pub(super) const OVERHEAD: usize = 400;

/// Fields of a response head, stored in one buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerFields {
    text: Vec<u8>,
    /// For each field: the end of its name and the end of its value in `text`.
    ends: Vec<(u32, u32)>,
}

impl AnswerFields {
    /// Adds a field.
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        let end = |text: &Vec<u8>| u32::try_from(text.len()).unwrap_or(u32::MAX);
        self.text.extend_from_slice(name);
        let name_end = end(&self.text);
        self.text.extend_from_slice(value);
        self.ends.push((name_end, end(&self.text)));
    }

    /// Returns the name and value of each field.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut start = 0;
        self.ends.iter().map(move |(name_end, value_end)| {
            let (name_end, value_end) = (*name_end as usize, *value_end as usize);
            let field = (&self.text[start..name_end], &self.text[name_end..value_end]);
            start = value_end;
            field
        })
    }

    /// Returns the first value of a field.
    pub fn first(&self, name: &str) -> Option<&[u8]> {
        let mut fields = self.iter();
        let is_named = |found: &[u8]| found.eq_ignore_ascii_case(name.as_bytes());
        fields.find(|it| is_named(it.0)).map(|it| it.1)
    }

    /// Returns the bytes of memory of the fields.
    fn size(&self) -> usize {
        self.text.len() + self.ends.len() * size_of::<(u32, u32)>()
    }
}

/// Head of an answer that several requests share.
#[derive(Clone, Debug)]
pub struct AnswerHead {
    /// Status of the response.
    pub status: u16,
    /// Reason phrase, which may be empty.
    pub reason: Vec<u8>,
    /// Fields of the origin, except hop-by-hop, framing and per-client fields.
    ///
    /// `Date` is always present.
    pub fields: AnswerFields,
    /// Instant at which the head arrived.
    pub arrived: Moment,
    /// Terms under which the answer may be used.
    pub terms: Terms,
    /// Cost of the request as the response states it, if the route reads it.
    pub billed: Option<Cost>,
}

/// Complete answer.
pub struct SharedAnswer {
    /// Head of the answer.
    pub head: AnswerHead,
    body: Arc<AnswerBody>,
    /// Instant at which the whole answer had arrived.
    complete: Moment,
}

impl SharedAnswer {
    /// Creates an answer that was complete at `complete`. `charge`: charge of its memory.
    pub(super) fn new(
        head: AnswerHead,
        mut body: Vec<u8>,
        mut charge: Charge,
        complete: Moment,
    ) -> Self {
        body.shrink_to_fit();
        charge.set(size(&head, body.len()));
        Self {
            head,
            body: AnswerBody::new(body, charge),
            complete,
        }
    }

    /// Returns the body.
    pub fn body(&self) -> &Arc<AnswerBody> {
        &self.body
    }

    /// Returns the instants until which the answer may be used under the route's settings.
    ///
    /// They count from the arrival of the whole answer. By then, its age has grown by the time that
    /// the body took.
    pub(super) fn windows(&self, collapse: &Collapse) -> Windows {
        let AnswerHead { terms, arrived, .. } = &self.head;
        let body_took = self.complete.since(*arrived);
        terms.later(body_took).windows(collapse, self.complete)
    }

    /// Returns the age of the answer, for the `Age` field.
    pub fn age(&self, now: Moment) -> Duration {
        self.head.terms.age(now.since(self.head.arrived))
    }
}

/// Returns the bytes of memory of an answer with a body of `length` bytes.
pub(super) fn size(head: &AnswerHead, length: usize) -> usize {
    OVERHEAD + head.reason.len() + head.fields.size() + length
}

/// Answer that the table of kinds keeps. When the table drops it, only readers still hold it.
pub(super) struct KeptAnswer(pub(super) Arc<SharedAnswer>);

impl Drop for KeptAnswer {
    fn drop(&mut self) {
        let Self(answer) = self;
        let is_read = Arc::strong_count(answer) > 1 || Arc::strong_count(&answer.body) > 1;
        if is_read {
            answer.body.hold();
        }
    }
}
