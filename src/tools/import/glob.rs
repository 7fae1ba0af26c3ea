//! Expands file names with `*`, `?` and `[...]`, as nginx's `include` does.

use std::path::{Component, Path, PathBuf};

use glob::{MatchOptions, Pattern};

use super::Files;

/// Maximum number of files that one include may match.
const MAX_FILES: usize = 2000;

/// Returns whether a file name has special characters, so that it may match several files.
pub(super) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Returns the files that match the pattern, ordered by name. A literal name is not looked up.
pub(super) fn expand(pattern: &Path, files: &dyn Files) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for component in pattern.components() {
        let name = component.as_os_str().to_string_lossy();
        let is_literal = !matches!(component, Component::Normal(_)) || !is_pattern(&name);
        let entries = |folder: &PathBuf| {
            if is_literal {
                return vec![folder.join(component)];
            }
            let mut names = files.list(folder);
            names.retain(|file| matches(&name, file));
            names.sort();
            names.into_iter().map(|file| folder.join(file)).collect()
        };
        found = found.iter().flat_map(entries).take(MAX_FILES).collect();
    }
    found
}

/// Returns whether a name matches the pattern.
///
/// As in glob(3), a pattern with an unclosed `[` is a plain name, and only a dot matches a leading
/// dot.
fn matches(pattern: &str, name: &str) -> bool {
    let options = MatchOptions {
        require_literal_leading_dot: true,
        ..MatchOptions::new()
    };
    // The crate `glob` knows `[!a]` but not its other form `[^a]`.
    let parsed = Pattern::new(&pattern.replace("[^", "[!"));
    parsed.map_or(pattern == name, |it| it.matches_with(name, options))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_matches_as_in_glob_3() {
        let cases = [
            ("*.conf", "a.conf", true),
            ("a?c", "abc", true),
            ("[a-c]x", "bx", true),
            ("[!a]x", "bx", true),
            ("*a*b", "xaxxab", true),
            ("[", "[", true),
            ("*.conf", "a.conf~", false),
            ("a?c", "ac", false),
            ("[!a]x", "ax", false),
            ("[]", "a", false),
            ("*", ".a", false),
            (".*", ".a", true),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
