//! A complete answer of an origin, as several requests get it.

use std::sync::Arc;
use std::time::Duration;

use config::Collapse;
use limit::{Cost, Moment};

use super::memory::{AnswerBody, Charge};
use super::terms::{Terms, Windows};

/// What an answer takes beside its bytes: the entry of the table, its key's node, this struct.
pub(super) const OVERHEAD: usize = 400;

/// Fields of a head, one behind the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerFields {
    text: Vec<u8>,
    /// Where each name and each value ends.
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

    /// The name and value of each field.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut start = 0;
        self.ends.iter().map(move |(name_end, value_end)| {
            let (name_end, value_end) = (*name_end as usize, *value_end as usize);
            let field = (&self.text[start..name_end], &self.text[name_end..value_end]);
            start = value_end;
            field
        })
    }

    /// The first value of a field.
    pub fn first(&self, name: &str) -> Option<&[u8]> {
        let mut fields = self.iter();
        let is_named = |found: &[u8]| found.eq_ignore_ascii_case(name.as_bytes());
        fields.find(|it| is_named(it.0)).map(|it| it.1)
    }

    fn size(&self) -> usize {
        self.text.len() + self.ends.len() * size_of::<(u32, u32)>()
    }
}

/// The head of an answer that several requests get.
#[derive(Clone, Debug)]
pub struct AnswerHead {
    /// The status.
    pub status: u16,
    /// The reason phrase, which may be empty.
    pub reason: Vec<u8>,
    /// The origin's fields, less those of one hop, for framing, and for one client.
    ///
    /// `Date` is there.
    pub fields: AnswerFields,
    /// When it arrived.
    pub arrived: Moment,
    /// For how long it may be used.
    pub terms: Terms,
    /// What it says that the request costs, if the route wants to know.
    pub billed: Option<Cost>,
}

/// A complete answer.
#[derive(Debug)]
pub struct SharedAnswer {
    /// Its head.
    pub head: AnswerHead,
    body: Arc<AnswerBody>,
    /// When all of it was there.
    complete: Moment,
}

impl SharedAnswer {
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

    /// Its body.
    pub fn body(&self) -> &Arc<AnswerBody> {
        &self.body
    }

    /// Until when it serves, by what the route says.
    pub(super) fn windows(&self, collapse: &Collapse) -> Windows {
        let AnswerHead { terms, arrived, .. } = &self.head;
        let took = self.complete.since(*arrived);
        terms.later(took).windows(collapse, self.complete)
    }

    /// How old it is, as `Age` says it.
    pub fn age(&self, now: Moment) -> Duration {
        self.head.terms.age(now.since(self.head.arrived))
    }
}

/// What an answer with a body of `length` bytes takes.
pub(super) fn size(head: &AnswerHead, length: usize) -> usize {
    OVERHEAD + head.reason.len() + head.fields.size() + length
}

/// An answer as the table of kinds has it. Once the table forgets it, its readers alone hold it.
#[derive(Debug)]
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
