//! JSON of overrides, in the API and in samples.

use serde::{Serialize, Serializer};

use super::plain::Plain;
use super::timestamp::timestamp;
use crate::overrides::Override;

/// JSON of an override: its values, its times in UTC, and its author.
#[derive(Serialize)]
struct OverrideJson<'o, V> {
    #[serde(flatten)]
    values: &'o V,
    since: Plain,
    until: Plain,
    by: Plain,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<Plain>,
}

impl<V: Serialize> Serialize for Override<V> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let json = OverrideJson {
            values: &self.values,
            since: timestamp(self.since),
            until: timestamp(self.until),
            by: Plain::new(&self.by),
            owner: self.owner.as_deref().map(Plain::new),
        };
        json.serialize(to)
    }
}
