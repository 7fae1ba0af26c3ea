//! Writes texts and values as TOML, on one line.

use std::fmt::Write as _;

use toml::de::DeValue;

use super::printable::is_printable;

/// Returns a text as a string of TOML in double quotes. Special characters are escaped.
pub fn toml_string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            // `\u` of TOML has four hexadecimal digits, and `\U` has eight.
            c if !is_printable(c) => {
                let code = u32::from(c);
                // Writing to a string does not fail.
                let _ = match u16::try_from(code) {
                    Ok(code) => write!(quoted, "\\u{code:04X}"),
                    Err(_) => write!(quoted, "\\U{code:08X}"),
                };
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// Returns a value as TOML on one line.
pub(super) fn toml_value(value: &DeValue) -> String {
    match value {
        DeValue::String(text) => toml_string(text),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(yes) => yes.to_string(),
        DeValue::Datetime(date) => date.to_string(),
        DeValue::Array(items) => toml_list(items.iter().map(|item| toml_value(item.get_ref()))),
        DeValue::Table(table) => toml_table(table.iter().map(|(name, item)| {
            let value = toml_value(item.get_ref());
            (toml_string(name.get_ref()), value)
        })),
    }
}

/// Returns a list of values as TOML on one line.
pub(super) fn toml_list(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(", "))
}

/// Returns a table as TOML on one line. `fields`: names and values, both written as TOML.
pub(super) fn toml_table(fields: impl IntoIterator<Item = (String, String)>) -> String {
    let fields = fields.into_iter();
    let fields = fields.map(|(name, value)| format!("{name} = {value}"));
    format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
}

/// Returns a text as the value of a field in the file, where `${` would begin a variable of the
/// environment.
pub fn toml_text(text: &str) -> String {
    toml_string(&text.replace("${", "$${"))
}
