//! File names with `*` and `?`, as in includes.

use std::path::{Component, Path, PathBuf};

use regex::Regex;

use super::Files;

/// Maximum number of files of an include.
const MAX_FILES: usize = 2000;

pub(super) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// The files that match the pattern, ordered by name.
pub(super) fn expand(pattern: &Path, files: &dyn Files) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for component in pattern.components() {
        let name = component.as_os_str().to_string_lossy();
        let literal = !matches!(component, Component::Normal(_)) || !is_pattern(&name);
        let expression = expression(&name);
        let matches = |file: &str| expression.as_ref().is_some_and(|it| it.is_match(file));
        let next = |folder: &PathBuf| {
            if literal {
                return vec![folder.join(component)];
            }
            let mut names = files.list(folder);
            // Only a dot in the pattern matches a leading dot.
            names.retain(|file| (name.starts_with('.') || !file.starts_with('.')) && matches(file));
            names.sort();
            names.into_iter().map(|file| folder.join(file)).collect()
        };
        found = found.iter().flat_map(next).take(MAX_FILES).collect();
    }
    found
}

/// The names that match the pattern; `None` if it is too long.
fn expression(pattern: &str) -> Option<Regex> {
    let pattern = regex::escape(pattern)
        .replace(r"\*", ".*")
        .replace(r"\?", ".");
    Regex::new(&format!("(?s)^{pattern}$")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_patterns() {
        let cases = [
            ("*.conf", "a.conf", true),
            ("*", "", true),
            ("a?c", "abc", true),
            ("*a*b", "xaxxab", true),
            ("[a]", "[a]", true),
            ("*.conf", "a.conf~", false),
            ("a?c", "ac", false),
            ("a", "", false),
            ("[a]", "a", false),
        ];
        for (pattern, name, fits) in cases {
            let regex = expression(pattern).unwrap();
            assert_eq!(regex.is_match(name), fits, "{pattern} {name}");
        }
    }
}
