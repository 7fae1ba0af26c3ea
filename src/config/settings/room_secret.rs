use std::fmt;

use crate::toml_string::{toml_string, toml_text};

/// A secret that signs the tickets and the sessions of a waiting room.
///
/// Its debug output never has the value.
#[derive(Clone, PartialEq, Eq)]
pub struct RoomSecret {
    value: Box<str>,
    /// As it is shown, with its quotes.
    toml: Box<str>,
    /// Whether it is written as one variable of the environment.
    is_variable: bool,
}

impl RoomSecret {
    /// Shortest secret, in bytes. 16 random bytes cannot be guessed.
    pub const MIN_BYTES: usize = 16;

    /// A secret with this value. `written`: its text in the file if that has variables of the
    /// environment, such as `${ROOM_SECRET}`.
    pub fn new(value: &str, written: Option<&str>) -> Self {
        Self {
            value: value.into(),
            toml: written.map_or_else(|| toml_text(value), toml_string).into(),
            is_variable: written.is_some_and(is_one_variable),
        }
    }

    /// The key of the signature.
    pub fn as_bytes(&self) -> &[u8] {
        self.value.as_bytes()
    }

    /// As TOML. It has the value, unless that comes from the environment or is hidden.
    pub(crate) fn toml(&self) -> &str {
        &self.toml
    }

    /// The secret without its value: shown as a variable of the environment, or else as `***`.
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

/// Whether a text is a variable, with nothing beside it: that may be a part of the secret.
fn is_one_variable(text: &str) -> bool {
    let name = text.strip_prefix("${").and_then(|it| it.strip_suffix('}'));
    name.is_some_and(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

impl fmt::Debug for RoomSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RoomSecret(***)")
    }
}
