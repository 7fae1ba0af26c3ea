use std::collections::HashSet;

/// How many notes stand in the file. Further ones are only counted there.
const MAX_NOTES: usize = 1000;

/// The settings with the notes that stand at no table of theirs, as comments above the first table.
pub(super) fn with_leftovers(page: &str, notes: &[String]) -> String {
    let known: HashSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("# "))
        .collect();
    let left: Vec<&str> = notes
        .iter()
        .map(String::as_str)
        .filter(|note| !known.contains(note))
        .collect();
    if left.is_empty() {
        return page.to_owned();
    }
    let mut text = String::from(
        "# To be looked at, besides what stands at the tables below: these lines have no place in this file.\n",
    );
    for note in left.iter().take(MAX_NOTES) {
        text.extend(["# ", note, "\n"]);
    }
    let more = left.len().saturating_sub(MAX_NOTES);
    if more > 0 {
        text.extend(["# and ", &more.to_string(), " more\n"]);
    }
    text.extend(["\n", page]);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_at_a_table_is_not_told_twice_and_no_list_is_endless() {
        let page = "# a.conf:2: b\n[server]\n";
        let notes = ["a.conf:1: a", "a.conf:2: b"].map(str::to_owned);
        let text = with_leftovers(page, &notes);
        assert!(
            text.ends_with(&format!("file.\n# a.conf:1: a\n\n{page}")),
            "{text}"
        );
        assert_eq!(with_leftovers(page, &notes[1..]), page);
        let many: Vec<String> = (0..MAX_NOTES + 3)
            .map(|line| format!("a.conf:{line}: x"))
            .collect();
        let text = with_leftovers(page, &many);
        assert!(text.contains("\n# and 3 more\n"), "{text}");
        assert_eq!(text.lines().count(), 1 + MAX_NOTES + 1 + 1 + 2);
    }
}
