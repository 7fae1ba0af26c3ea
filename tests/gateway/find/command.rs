//! What the command prints.

use serde_json::Value;

/// JSON at the begin of a text, and the rest of it.
pub fn json_before(text: &str) -> (Value, &str) {
    let mut all = serde_json::Deserializer::from_str(text).into_iter();
    let first = all.next().and_then(Result::ok);
    (first.expect("JSON"), &text[all.byte_offset()..])
}
