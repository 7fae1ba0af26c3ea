//! Printable text for JSON: text from outside cannot control the terminal that shows it.

use std::fmt::{self, Display, Write as _};

use config::is_printable;
use serde::{Deserialize, Deserializer, Serialize};

/// Text from outside with unprintable characters escaped as `\u{NN}`.
///
/// A program that reads it escapes it again: another server may listen at the gateway's address.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Plain(String);

impl Plain {
    /// Escapes unprintable characters.
    pub fn new(text: &str) -> Self {
        let mut plain = String::with_capacity(text.len());
        for c in text.chars() {
            if is_printable(c) {
                plain.push(c);
            } else {
                // Writing to a string does not fail.
                let _ = write!(plain, "\\u{{{:x}}}", u32::from(c));
            }
        }
        Self(plain)
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Plain {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl Display for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self::new(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_control_a_terminal_are_escaped() {
        let nasty = "a\x1b[2J\r\n\u{9b}31m\u{202e}b\\x1B é";
        let plain = r"a\u{1b}[2J\u{d}\u{a}\u{9b}31m\u{202e}b\x1B é";
        assert_eq!(Plain::new(nasty).as_str(), plain);
        let read: Plain = serde_json::from_str(r#""\u001b]0;x\u0007""#).unwrap();
        assert_eq!(read.as_str(), r"\u{1b}]0;x\u{7}");
    }
}
