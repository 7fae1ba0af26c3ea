//! Metrics by name, as long as somebody holds them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Metrics of named things, such as the plans of a zone.
///
/// A reload makes a new version of the settings, while requests of the earlier version still run.
/// Both count into the same metrics.
pub struct Registry<M>(Mutex<HashMap<String, Weak<M>>>);

impl<M> Default for Registry<M> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<M> Registry<M> {
    /// Returns the metrics of `name`: the same ones as long as any handle of them exists.
    pub fn get(&self, name: &str, new: impl FnOnce() -> M) -> Arc<M> {
        let mut known = self.lock();
        known.retain(|_, metrics| metrics.strong_count() > 0);
        let same = known.get(name).and_then(Weak::upgrade);
        same.unwrap_or_else(|| {
            let new = Arc::new(new());
            known.insert(name.to_owned(), Arc::downgrade(&new));
            new
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Weak<M>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_the_same_metrics_as_long_as_a_handle_exists() {
        let registry = Registry::default();
        let first = registry.get("a", || 1);
        assert_eq!((*registry.get("a", || 2), *registry.get("b", || 3)), (1, 3));
        drop(first);
        assert_eq!(*registry.get("a", || 4), 4);
    }
}
