use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// The name of several files, with one `*` in its last part: `conf.d/*.toml`.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    folder: PathBuf,
    /// What stands before the `*`.
    start: String,
    /// What stands behind it.
    end: String,
}

impl Pattern {
    /// Reads a pattern. `None` if there is not one `*`, or if it is not in the last part.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let last = path.file_name().and_then(OsStr::to_str)?;
        let (start, end) = last.split_once('*')?;
        let is_one = !end.contains('*') && !folder.to_string_lossy().contains('*');
        is_one.then(|| Self {
            folder: folder.to_owned(),
            start: start.to_owned(),
            end: end.to_owned(),
        })
    }

    /// The files of these names now, sorted. A folder that is missing has none.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let here = if self.folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            &self.folder
        };
        let names = fs::read_dir(here).into_iter().flatten().flatten();
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        let names: BTreeSet<String> = names.filter(|name| self.has(name)).collect();
        names.iter().map(|name| self.folder.join(name)).collect()
    }

    fn has(&self, name: &str) -> bool {
        // As in a shell: hidden files, such as those of editors, are not meant.
        let is_hidden = name.starts_with('.') && !self.start.starts_with('.');
        let is_long = name.len() >= self.start.len() + self.end.len();
        !is_hidden && is_long && name.starts_with(&self.start) && name.ends_with(&self.end)
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
            let files = Pattern::of(&folder.path().join(pattern)).unwrap().files();
            let expected = expected.iter().map(|name| folder.path().join(name));
            assert_eq!(files, expected.collect::<Vec<_>>(), "{pattern}");
        }
        for no_pattern in ["a.toml", "*/a.toml", "*/*.toml", "**", ""] {
            assert!(Pattern::of(Path::new(no_pattern)).is_none(), "{no_pattern}");
        }
        let nowhere = Pattern::of(&folder.path().join("no/*.toml")).unwrap();
        assert_eq!(nowhere.files(), Vec::<PathBuf>::new());
    }
}
