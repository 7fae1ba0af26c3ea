//! File name patterns with one `*`, for included files.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// File name pattern with one `*` in its last component: `conf.d/*.toml`.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    folder: PathBuf,
    /// Text before the `*`.
    start: String,
    /// Text after the `*`.
    end: String,
}

impl Pattern {
    /// Parses a pattern. `None` if there is not exactly one `*`, or it is not in the last
    /// component.
    pub(super) fn parse(path: &Path) -> Option<Self> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let name = path.file_name().and_then(OsStr::to_str)?;
        let (start, end) = name.split_once('*')?;
        let has_others = end.contains('*') || folder.to_string_lossy().contains('*');
        (!has_others).then(|| Self {
            folder: folder.to_owned(),
            start: start.to_owned(),
            end: end.to_owned(),
        })
    }

    /// Lists the files that match now, sorted.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be listed. The set of files is then unknown.
    pub(super) fn files(&self) -> io::Result<Vec<PathBuf>> {
        let mut names = BTreeSet::new();
        for entry in fs::read_dir(self.folder())? {
            let name = entry?.file_name().into_string().ok();
            names.extend(name.filter(|name| self.matches(name)));
        }
        Ok(names.iter().map(|name| self.folder.join(name)).collect())
    }

    /// Returns the folder with the files.
    pub(super) fn folder(&self) -> &Path {
        if self.folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            &self.folder
        }
    }

    /// Returns whether the name of a file in the folder matches.
    fn matches(&self, name: &str) -> bool {
        // As in a shell, a pattern does not match hidden files, such as those of editors.
        let is_hidden = name.starts_with('.') && !self.start.starts_with('.');
        let rest = name.strip_prefix(&self.start);
        !is_hidden && rest.is_some_and(|rest| rest.ends_with(&self.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text_of_names_that_are_not_hidden() {
        let folder = tempfile::tempdir().unwrap();
        let names = [
            "b.toml", "a.toml", ".c.toml", "d.toml~", "toml", ".toml", "a.tom",
        ];
        for name in names {
            fs::write(folder.path().join(name), "").unwrap();
        }
        for (pattern, expected) in [
            ("*.toml", &["a.toml", "b.toml"][..]),
            ("a*.toml", &["a.toml"]),
            (".*", &[".c.toml", ".toml"]),
            ("a.to*oml", &[]),
            ("*", &["a.tom", "a.toml", "b.toml", "d.toml~", "toml"]),
        ] {
            let pattern_of = Pattern::parse(&folder.path().join(pattern)).unwrap();
            let files = pattern_of.files().unwrap();
            let expected = expected.iter().map(|name| folder.path().join(name));
            assert_eq!(files, expected.collect::<Vec<_>>(), "{pattern}");
        }
        for no_pattern in ["a.toml", "*/a.toml", "*/*.toml", "**", ""] {
            assert!(
                Pattern::parse(Path::new(no_pattern)).is_none(),
                "{no_pattern}"
            );
        }
        for (folder_name, expected) in [
            ("no", io::ErrorKind::NotFound),
            ("a.toml", io::ErrorKind::NotADirectory),
        ] {
            let pattern = Pattern::parse(&folder.path().join(folder_name).join("*.toml")).unwrap();
            assert_eq!(
                pattern.files().unwrap_err().kind(),
                expected,
                "{folder_name}"
            );
        }
    }
}
