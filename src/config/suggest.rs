//! Suggests the name that a user meant, for messages about a mistyped one.

/// Returns the name in `known` that is closest to a mistyped name, if one is close.
pub(super) fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let with_distance = |known: &&'k str| Some((distance(name, known)?, *known));
    let close = known.iter().filter_map(with_distance);
    close.min().map(|(_, nearest)| nearest)
}

/// Returns the number of typing mistakes from `known` to `name`; `None`: the names are not close.
///
/// Names are close if few characters differ, or if one contains the other.
fn distance(name: &str, known: &str) -> Option<usize> {
    const MAX_MISTAKES: usize = 2;
    let is_long = known.len().min(name.len()) > 3;
    let is_part = is_long && (known.contains(name) || name.contains(known));
    // Fast path: each character that one name has more than the other is a mistake.
    if known.chars().count().abs_diff(name.chars().count()) > MAX_MISTAKES && !is_part {
        return None;
    }
    let mistakes = strsim::levenshtein(&name.to_lowercase(), &known.to_lowercase());
    let is_similar = mistakes <= MAX_MISTAKES && mistakes * 2 < known.len();
    (is_similar || is_part).then_some(mistakes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_is_recognized_and_another_word_is_not() {
        let known = ["zone", "burst", "delay", "nodelay", "remote_addr"];
        let cases = [
            ("brust", Some("burst")),
            ("Zone", Some("zone")),
            ("zones", Some("zone")),
            ("no_delay", Some("nodelay")),
            ("binary_remote_addr", Some("remote_addr")),
            ("rate", None),
            ("", None),
        ];
        for (name, suggested) in cases {
            assert_eq!(nearest(name, &known), suggested, "{name}");
        }
    }
}
