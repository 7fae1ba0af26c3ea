//! File names with `*`, `?` and `[...]`, as in includes.

use std::path::{Component, Path, PathBuf};

use super::Files;

/// Maximum number of files of an include.
const MAX_FILES: usize = 2000;

pub(super) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// The files that match the pattern, ordered by name.
pub(super) fn expand(pattern: &Path, files: &dyn Files) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for component in pattern.components() {
        let name = component.as_os_str().to_string_lossy();
        let literal = !matches!(component, Component::Normal(_)) || !is_pattern(&name);
        let next = |folder: &PathBuf| {
            if literal {
                return vec![folder.join(component)];
            }
            let mut names = files.list(folder);
            // Only a dot in the pattern matches a leading dot.
            names.retain(|file| {
                (name.starts_with('.') || !file.starts_with('.'))
                    && matches(name.as_bytes(), file.as_bytes())
            });
            names.sort();
            names.into_iter().map(|file| folder.join(file)).collect()
        };
        found = found.iter().flat_map(next).take(MAX_FILES).collect();
    }
    found
}

/// Whether a name matches the pattern.
///
/// It backtracks only to the last `*`, so its time is at most the product of the lengths.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star = None;
    while n < name.len() {
        let step = match pattern.get(p) {
            Some(b'*') => {
                star = Some((p + 1, n));
                p += 1;
                continue;
            }
            Some(b'?') => Some(1),
            Some(b'[') => set(&pattern[p..], name[n]),
            Some(byte) if *byte == name[n] => Some(1),
            _ => None,
        };
        if let Some(length) = step {
            p += length;
            n += 1;
        } else if let Some((behind, from)) = star {
            p = behind;
            n = from + 1;
            star = Some((behind, n));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// The length of a set such as `[a-z]` if it contains the byte.
fn set(pattern: &[u8], byte: u8) -> Option<usize> {
    let not = matches!(pattern.get(1), Some(b'!' | b'^'));
    let start = 1 + usize::from(not);
    let length = pattern
        .iter()
        .skip(start + 1)
        .position(|byte| *byte == b']');
    let Some(length) = length.map(|length| length + 1) else {
        return (byte == b'[').then_some(1);
    };
    let inside = &pattern[start..start + length];
    let mut at = 0;
    let mut within = false;
    while let Some(low) = inside.get(at) {
        if let (Some(b'-'), Some(high)) = (inside.get(at + 1), inside.get(at + 2)) {
            within |= (*low..=*high).contains(&byte);
            at += 3;
        } else {
            within |= *low == byte;
            at += 1;
        }
    }
    (within != not).then_some(start + length + 1)
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
            ("[a-c]x", "bx", true),
            ("[!a]x", "bx", true),
            ("*a*b", "xaxxab", true),
            ("[", "[", true),
            ("*.conf", "a.conf~", false),
            ("a?c", "ac", false),
            ("[a-c]x", "dx", false),
            ("[!a]x", "ax", false),
            ("a", "", false),
            ("[]", "a", false),
        ];
        for (pattern, name, fits) in cases {
            let found = matches(pattern.as_bytes(), name.as_bytes());
            assert_eq!(found, fits, "{pattern} {name}");
        }
    }
}
