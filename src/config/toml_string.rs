use std::fmt::Write as _;

use super::printable::is_printable;

/// A text as TOML's basic string.
pub fn toml_string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            // Of these all have four digits.
            c if !is_printable(c) => {
                // Writing to a string does not fail.
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// A text as the value of a field, which has no variable of the environment.
pub fn toml_text(text: &str) -> String {
    toml_string(&text.replace("${", "$${"))
}
