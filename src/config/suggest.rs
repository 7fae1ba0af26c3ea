//! Suggests the correct name for a mistyped one.

/// Returns the name in `known` that is closest to a mistyped name, if one is close.
pub(super) fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let candidates = known
        .iter()
        .filter_map(|it| Some((distance(name, it)?, *it)));
    candidates.min().map(|(_, known)| known)
}

/// Returns the number of typing mistakes from `known` to `name`; `None`: the names are not close.
///
/// Names are close if few characters differ, or if one contains the other.
fn distance(name: &str, known: &str) -> Option<usize> {
    const MAX_MISTAKES: usize = 2;
    let is_long = known.len().min(name.len()) > 3;
    let is_part = is_long && (known.contains(name) || name.contains(known));
    // Fast path: each missing character is a mistake.
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
        for (name, meant) in cases {
            assert_eq!(nearest(name, &known), meant, "{name}");
        }
    }
}
