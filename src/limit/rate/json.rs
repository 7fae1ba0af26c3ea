//! Rates in JSON: their text in the file, or `none`.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Rate;

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::parse_or_unlimited(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}
