//! Formats shares, percentages and keys for the output of commands.

use gateway::observe::escape::escape;
use limit::to_float;

/// Maximum number of characters shown of a key.
const MAX_KEY_CHARACTERS: usize = 39;

/// Formats a key: escaped, and truncated if it is long.
pub(crate) fn key(key: &[u8]) -> String {
    escape(key).chars().take(MAX_KEY_CHARACTERS).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_close_to_0_or_100_percent_is_shown_as_a_bound() {
        let shares = [0.0, 0.0004, 0.5, 0.9999, 1.0].map(percent);
        assert_eq!(
            shares,
            ["0.0 %", "< 0.1 %", "50.0 %", "> 99.9 %", "100.0 %"]
        );
    }
}
