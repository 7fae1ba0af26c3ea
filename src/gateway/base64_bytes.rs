//! Bytes as base64 in JSON, for `#[serde(with = "crate::base64_bytes")]`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

/// Writes bytes as base64 text.
pub(crate) fn serialize<S: Serializer>(bytes: &impl AsRef<[u8]>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&STANDARD.encode(bytes))
}

/// Reads bytes from base64 text.
pub(crate) fn deserialize<'de, D: Deserializer<'de>, T: TryFrom<Vec<u8>>>(
    from: D,
) -> Result<T, D::Error> {
    let bytes = STANDARD
        .decode(String::deserialize(from)?)
        .map_err(D::Error::custom)?;
    bytes
        .try_into()
        .map_err(|_| D::Error::custom("too many or too few bytes"))
}
