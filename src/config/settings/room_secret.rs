//! Secrets of waiting rooms.

use std::fmt;

use crate::toml_string::{toml_string, toml_text};

/// Secret that signs the tickets and the sessions of a waiting room.
///
/// Its debug output never contains the value.
#[derive(Clone, PartialEq, Eq)]
pub struct RoomSecret {
    value: Box<str>,
    /// Text for output, with quotes.
    toml: Box<str>,
    /// The file writes the secret as a single variable of the environment.
    is_variable: bool,
}

impl RoomSecret {
    /// Minimum length of a secret, in bytes. 16 random bytes cannot be guessed.
    pub const MIN_BYTES: usize = 16;

    /// Makes a secret.
    ///
    /// `written`: its text in the file if that has variables of the environment, such as
    /// `${ROOM_SECRET}`.
    pub fn new(value: &str, written: Option<&str>) -> Self {
        Self {
            value: value.into(),
            toml: written.map_or_else(|| toml_text(value), toml_string).into(),
            is_variable: written.is_some_and(is_one_variable),
        }
    }

    /// Returns the key of the signature.
    pub fn as_bytes(&self) -> &[u8] {
        self.value.as_bytes()
    }

    /// Returns the secret as TOML. It has the value, unless that comes from the environment or is
    /// hidden.
    pub(crate) fn toml(&self) -> &str {
        &self.toml
    }

    /// Returns the secret without its value: shown as a variable of the environment, or as `***`.
    pub fn hidden(&self) -> Self {
        let toml = if self.is_variable {
            self.toml.clone()
        } else {
            "\"***\"".into()
        };
        Self {
            value: "".into(),
            toml,
            is_variable: self.is_variable,
        }
    }
}

/// Returns whether a text is exactly one variable. Further text could be a part of the secret.
fn is_one_variable(text: &str) -> bool {
    let name = text.strip_prefix("${").and_then(|it| it.strip_suffix('}'));
    name.is_some_and(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

impl fmt::Debug for RoomSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RoomSecret(***)")
    }
}
