//! Growth of counts since the previous second: a sample shows what a second adds to total counts.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::mem;

use super::plain::Plain;
use crate::observe::metrics::Counts;

/// Counts since the start of the process.
///
/// If a zone, server or route is removed from the file and comes back, it counts from zero again.
/// Then its whole count is its growth.
pub(crate) trait Growing {
    /// Computes the growth since `past`.
    fn since(&self, past: &Self) -> Self;
}

impl Growing for u64 {
    fn since(&self, past: &Self) -> Self {
        self.checked_sub(*past).unwrap_or(*self)
    }
}

/// Seconds, to the microsecond.
impl Growing for f64 {
    fn since(&self, past: &Self) -> Self {
        let since = ((self - past) * 1e6).round() / 1e6;
        if since < 0.0 { *self } else { since }
    }
}

impl Growing for Counts {
    fn since(&self, past: &Self) -> Self {
        Self::since(self, past)
    }
}

impl<C: Growing + Clone> Growing for Option<C> {
    fn since(&self, past: &Self) -> Self {
        let now = self.as_ref()?;
        Some(
            past.as_ref()
                .map_or_else(|| now.clone(), |past| now.since(past)),
        )
    }
}

/// Only the entries that have grown.
impl<N: Growing + Copy + Default + PartialOrd> Growing for BTreeMap<Plain, N> {
    fn since(&self, past: &Self) -> Self {
        let growths = self.iter().map(|(name, count)| {
            let before = past.get(name).copied().unwrap_or_default();
            (name.clone(), count.since(&before))
        });
        growths.filter(|(_, by)| *by > N::default()).collect()
    }
}

impl<const LEN: usize> Growing for [u64; LEN] {
    fn since(&self, past: &Self) -> Self {
        std::array::from_fn(|nth| self[nth].since(&past[nth]))
    }
}

/// Implements [`Growing`] for a tuple, part by part.
macro_rules! growing_tuple {
    ($($kind:ident $nth:tt),*) => {
        impl<$($kind: Growing),*> Growing for ($($kind),*) {
            fn since(&self, past: &Self) -> Self {
                ($(self.$nth.since(&past.$nth)),*)
            }
        }
    };
}

/// Implements [`Growing`] for a struct, field by field.
macro_rules! growing_fields {
    ($name:ty: $($field:ident),*) => {
        impl $crate::status::growth::Growing for $name {
            fn since(&self, past: &Self) -> Self {
                Self { $($field: self.$field.since(&past.$field)),* }
            }
        }
    };
}

pub(crate) use growing_fields;

growing_tuple!(A 0, B 1);
growing_tuple!(A 0, B 1, C 2);
growing_tuple!(A 0, B 1, C 2, D 3);
growing_tuple!(A 0, B 1, C 2, D 3, E 4);

/// Counts of each zone, gate, server or route one second ago.
pub(crate) struct Before<K, C> {
    /// Counts at the end of the previous second.
    before: HashMap<K, C>,
    /// Counts of this second, as far as they are known.
    now: HashMap<K, C>,
}

impl<K, C> Default for Before<K, C> {
    fn default() -> Self {
        Self {
            before: HashMap::new(),
            now: HashMap::new(),
        }
    }
}

impl<K: Eq + Hash, C: Growing + Default> Before<K, C> {
    /// Begins a new second. Forgets keys that were not counted in the last one.
    pub(crate) fn begin(&mut self) {
        self.before = mem::take(&mut self.now);
    }

    /// Returns the growth since the last second, and keeps `now`, the total count.
    pub(crate) fn since(&mut self, key: K, now: C) -> C {
        let since = now.since(&self.before.remove(&key).unwrap_or_default());
        self.now.insert(key, now);
        since
    }

    /// Returns whether this key was already counted in this second.
    pub(crate) fn has(&self, key: &K) -> bool {
        self.now.contains_key(key)
    }

    /// Returns the number of keys counted in this second.
    pub(crate) fn len(&self) -> usize {
        self.now.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unchanged_counts_are_left_out_and_a_restart_counts_from_zero() {
        let counts = |a: u64, b| BTreeMap::from([("a".into(), a), ("b".into(), b)]);
        let grown = counts(7, 2).since(&counts(4, 2));
        assert_eq!(grown, BTreeMap::from([("a".into(), 3)]));
        let restarted = counts(1, 0).since(&counts(4, 2));
        assert_eq!(restarted, BTreeMap::from([("a".into(), 1)]));
    }
}
