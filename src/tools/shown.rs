//! Formats numbers and keys, and reads lists of JSON, for several commands.

use gateway::observe::escape::escape;
use limit::to_float;
use serde_json::Value;

/// Maximum number of characters shown of a key.
const MAX_KEY: usize = 39;

/// Formats a key: escaped, and truncated if it is long.
pub(crate) fn key(key: &[u8]) -> String {
    escape(key).chars().take(MAX_KEY).collect()
}

/// Returns `part` as a share of `whole`, from 0 to 1; 0 if `whole` is 0.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        to_float(part) / to_float(whole)
    }
}

/// Formats a share in percent. Never shows 0 or 100 % for a share that is only close to it.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if share > 0.0 && percent < 0.1 {
        "< 0.1 %".to_owned()
    } else if share < 1.0 && percent > 99.9 {
        "> 99.9 %".to_owned()
    } else {
        format!("{percent:.1} %")
    }
}

/// Returns the elements of a list of JSON. Other values have none.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearly_nothing_is_not_nothing() {
        let shares = [0.0, 0.0004, 0.5, 0.9999, 1.0].map(percent);
        assert_eq!(
            shares,
            ["0.0 %", "< 0.1 %", "50.0 %", "> 99.9 %", "100.0 %"]
        );
    }
}
