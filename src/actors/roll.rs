use super::messages::Key;

/// All keys that a supervisor remembers, each at the index that it knows: so that they can be walked in small steps,
/// with everything going on in between.
///
/// Whoever walks from the end to the front sees every key that stays, whatever comes and goes meanwhile: into a place
/// that becomes free the last key moves, which has been seen. Such a key may be seen twice.
#[derive(Debug, Default)]
pub(super) struct Roll(Vec<Key>);

impl Roll {
    /// Adds a key, and tells its index.
    pub(super) fn add(&mut self, key: Key) -> u32 {
        // Memory ends long before this many keys.
        let index = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        self.0.push(key);
        index
    }

    /// Removes the key at `index`. The key that is there then, if any, has moved there.
    pub(super) fn remove(&mut self, index: u32) -> Option<&Key> {
        let index = index as usize;
        if index < self.0.len() {
            self.0.swap_remove(index);
        }
        if self.0.len() < self.0.capacity() / 4 {
            self.0.shrink_to(self.0.len() * 2);
        }
        self.0.get(index)
    }

    /// Up to `most` keys from just before the index `end` to the front, and where to go on, 0 at the end.
    pub(super) fn walk(&self, end: usize, most: usize) -> (impl Iterator<Item = &Key>, usize) {
        let end = end.min(self.0.len());
        let start = end.saturating_sub(most);
        (self.0[start..end].iter().rev(), start)
    }

    pub(super) fn clear(&mut self) {
        self.0 = Vec::new();
    }
}
