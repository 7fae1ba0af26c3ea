//! Finds the folders in which an event may change the file that a path leads to.
//!
//! A path may contain symbolic links. If a link changes, the path leads to another file.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::{fs, path};

/// Maximum number of symbolic links in a path, as in the kernel.
const MAX_LINKS: usize = 40;

/// Returns the folders that decide which file `path` leads to.
///
/// These are the file's own folder, and the folder of every symbolic link on the way. If a
/// component of the path does not exist, the last folder is the last existing one.
pub(super) fn folders(path: &Path) -> BTreeSet<PathBuf> {
    let mut folders = BTreeSet::new();
    let mut current = PathBuf::new();
    let mut link_count = 0;
    // Components that are not resolved yet, the next one last.
    let mut remaining =
        reversed_components(&path::absolute(path).unwrap_or_else(|_| path.to_owned()));
    while let Some(component) = remaining.pop() {
        if component == ".." {
            current.pop();
            continue;
        }
        let next = current.join(&component);
        let Ok(found) = fs::symlink_metadata(&next) else {
            folders.insert(current);
            return folders;
        };
        if found.is_symlink() {
            link_count += 1;
            let target = fs::read_link(&next).ok();
            let target = target.filter(|_| link_count <= MAX_LINKS);
            folders.insert(current.clone());
            let Some(target) = target else {
                return folders;
            };
            remaining.extend(reversed_components(&target));
        } else {
            if remaining.is_empty() {
                folders.insert(current);
            }
            current = next;
        }
    }
    folders
}

/// Returns the components of a path in reverse order.
///
/// An absolute path begins with the root. Joining the root replaces the path before it.
fn reversed_components(path: &Path) -> Vec<OsString> {
    let components = path.components().rev();
    let components = components.filter(|component| *component != Component::CurDir);
    components.map(|it| it.as_os_str().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn every_link_on_the_way_is_watched() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for folder in ["etc", "data/v1", "data/v2"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("data/v1/file"), "").unwrap();
        symlink("v1", root.join("data/now")).unwrap();
        symlink("../data/now/file", root.join("etc/link")).unwrap();
        symlink(root.join("etc/loop"), root.join("etc/loop")).unwrap();

        let cases: [(&str, &[&str]); 5] = [
            ("data/v1/file", &["data/v1"]),
            ("data/now/file", &["data", "data/v1"]),
            ("etc/link", &["data", "data/v1", "etc"]),
            ("data/gone/file", &["data"]),
            ("etc/loop", &["etc"]),
        ];
        for (path, expected) in cases {
            let expected = expected.iter().map(|folder| root.join(folder)).collect();
            assert_eq!(folders(&root.join(path)), expected, "{path}");
        }
    }
}
