use std::collections::BTreeMap;

use super::Tag;

/// The tags behind the first waiters of all flows, and of how many flows each is.
#[derive(Debug, Default)]
pub(super) struct Heads(BTreeMap<Tag, u32>);

impl Heads {
    /// The smallest tag.
    pub(super) fn first(&self) -> Option<Tag> {
        self.0.first_key_value().map(|(tag, _)| *tag)
    }

    /// A flow has another tag. 0 stands for none.
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
