/// The name in `known` that a mistyped name probably stands for.
pub(super) fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let near = |known: &&str| {
        let part =
            known.len().min(name.len()) > 3 && (known.contains(name) || name.contains(known));
        let longer = known.chars().count().abs_diff(name.chars().count());
        if longer > 2 && !part {
            return None;
        }
        let slips = distance(&name.to_lowercase(), &known.to_lowercase());
        let few = slips <= 2 && slips * 2 < known.len();
        (few || part).then_some(slips)
    };
    let candidates = known
        .iter()
        .filter_map(|known| Some((near(known)?, *known)));
    candidates.min().map(|(_, known)| known)
}

/// How many letters must be added, removed or replaced to change one word into the other.
fn distance(from: &str, to: &str) -> usize {
    let to = to.chars().collect::<Vec<_>>();
    let mut row = (0..=to.len()).collect::<Vec<_>>();
    for (i, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognized_and_another_word_is_not() {
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
