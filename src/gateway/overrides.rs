//! Overrides: values that an operator sets in place of configured ones, until they expire.
//!
//! `zone`, `gate` and `room` define which of their values can be overridden. Maintenance of a route
//! is an override, too.

use std::sync::Arc;

use limit::Moment;

/// Values that apply in place of the configured ones, until they expire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Override<V> {
    /// The overriding values.
    pub values: V,
    /// Instant at which the override was first set.
    pub since: Moment,
    /// Instant at which the override expires.
    pub until: Moment,
    /// Author: the name of a token, or an address.
    pub by: Arc<str>,
    /// Program that renews the override before it expires; `None`: no program does.
    ///
    /// Only the owner may replace the override meanwhile.
    pub owner: Option<Arc<str>>,
}

impl<V> Override<V> {
    /// Returns whether the override has expired.
    pub fn has_expired(&self, now: Moment) -> bool {
        self.until <= now
    }
}

/// Values of a zone, a gate or a room that can be overridden. The default overrides nothing.
pub trait Overridable: Default + PartialEq {
    /// Name of each value in metrics, and its text in the log; `None`: not overridden.
    ///
    /// Zones, gates and rooms have three such values each.
    fn named(&self) -> [(&'static str, Option<String>); 3];

    /// Texts of the overridden values, such as `rate 20r/s` and `paused`.
    fn texts(&self) -> Vec<String> {
        let named = self.named().into_iter();
        named.filter_map(|(_, text)| text).collect()
    }
}

/// Returns the name of each value with 1 if it is overridden, else 0.
pub(crate) fn overridden_names<V: Overridable>(
    overridden: Option<&Override<V>>,
) -> [(&'static str, u8); 3] {
    // The default has the same names, and overrides none of the values.
    let named = overridden.map_or_else(|| V::default().named(), |set| set.values.named());
    named.map(|(name, text)| (name, u8::from(text.is_some())))
}
