//! Tags behind the first waiters of all flows.
//!
//! A *flow* is a key in the queue. A *tag* is an instant in the order of departures. A newcomer is
//! placed behind the first waiter of each waiting key, so the smallest of these tags bounds how far
//! a departure raises the tag of newcomers.

use std::collections::BTreeMap;

use super::Tag;

/// Tags behind the first waiters of all flows, each with its number of flows.
#[derive(Debug, Default)]
pub(super) struct Heads(BTreeMap<Tag, u32>);

impl Heads {
    /// Returns the smallest tag.
    pub(super) fn first(&self) -> Option<Tag> {
        self.0.first_key_value().map(|(tag, _)| *tag)
    }

    /// Replaces the tag of a flow. 0: the flow has none.
    pub(super) fn replace(&mut self, before: Tag, after: Tag) {
        if before == after {
            return;
        }
        if let Some(count) = self.0.get_mut(&before) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&before);
            }
        }
        if after > 0 {
            *self.0.entry(after).or_default() += 1;
        }
    }
}
