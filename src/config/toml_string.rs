//! Writes texts as strings of TOML.

use std::fmt::Write as _;

use super::printable::is_printable;

/// Returns a text as a basic string of TOML.
pub fn toml_string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            // All of these characters have four hexadecimal digits.
            c if !is_printable(c) => {
                // Writing to a string does not fail.
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// Returns a text as the value of a field, without variables of the environment.
pub fn toml_text(text: &str) -> String {
    toml_string(&text.replace("${", "$${"))
}
