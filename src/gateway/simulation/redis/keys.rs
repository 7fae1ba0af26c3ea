//! The keys of the fake Redis, with their values and lifetimes.

use std::collections::BTreeMap;

/// Keys, their values, and when they expire.
#[derive(Clone, Default)]
pub(super) struct Keys(BTreeMap<Vec<u8>, Entry>);

/// Value of a key.
#[derive(Clone)]
struct Entry {
    content: Content,
    /// Expiry in milliseconds since the Unix epoch; `None`: never.
    expires: Option<i64>,
}

/// Values by field.
pub(super) type Hash = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone)]
pub(super) enum Content {
    Text(Vec<u8>),
    /// Values by field; never empty.
    Hash(Hash),
}

impl Keys {
    /// Removes the keys that have expired at `now`, in microseconds.
    pub(super) fn expire(&mut self, now: u64) {
        self.0.retain(|_, entry| entry.is_alive(now));
    }

    /// Returns the names of the keys that have not expired at `now`, in microseconds.
    pub(super) fn names(&self, now: u64) -> Vec<String> {
        let alive = self.0.iter().filter(|(_, entry)| entry.is_alive(now));
        let names = alive.map(|(name, _)| String::from_utf8_lossy(name).into_owned());
        names.collect()
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<&Content> {
        self.0.get(key).map(|entry| &entry.content)
    }

    pub(super) fn set(&mut self, key: &[u8], content: Content, expires: Option<i64>) {
        self.0.insert(key.to_vec(), Entry { content, expires });
    }

    pub(super) fn remove(&mut self, key: &[u8]) -> bool {
        self.0.remove(key).is_some()
    }

    /// Sets when a key expires. Returns whether there is such a key.
    pub(super) fn set_expires(&mut self, key: &[u8], expires: i64) -> bool {
        let entry = self.0.get_mut(key);
        entry.map(|entry| entry.expires = Some(expires)).is_some()
    }

    pub(super) fn expires(&self, key: &[u8]) -> Option<i64> {
        self.0.get(key)?.expires
    }

    /// Changes a hash, or an empty one if there is no such key.
    ///
    /// Returns `None` if the key has a value of another type.
    pub(super) fn change<T>(
        &mut self,
        key: &[u8],
        change: impl FnOnce(&mut Hash) -> T,
    ) -> Option<T> {
        let entry = self.0.entry(key.to_vec()).or_insert_with(|| Entry {
            content: Content::Hash(Hash::new()),
            expires: None,
        });
        let Content::Hash(hash) = &mut entry.content else {
            return None;
        };
        let result = change(hash);
        if hash.is_empty() {
            self.0.remove(key);
        }
        Some(result)
    }
}

impl Entry {
    fn is_alive(&self, now: u64) -> bool {
        let millis = i64::try_from(now / 1000).unwrap_or(i64::MAX);
        self.expires.is_none_or(|expires| millis <= expires)
    }
}
