//! Suggests the correct name for a mistyped one.

/// Returns the name in `known` that is closest to a mistyped name, if one is close.
pub(super) fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let near = |known: &&str| {
        let part =
            known.len().min(name.len()) > 3 && (known.contains(name) || name.contains(known));
        let longer = known.chars().count().abs_diff(name.chars().count());
        if longer > 2 && !part {
            return None;
        }
        let slips = strsim::levenshtein(&name.to_lowercase(), &known.to_lowercase());
        let few = slips <= 2 && slips * 2 < known.len();
        (few || part).then_some(slips)
    };
    let candidates = known.iter().filter_map(|it| Some((near(it)?, *it)));
    candidates.min().map(|(_, known)| known)
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
