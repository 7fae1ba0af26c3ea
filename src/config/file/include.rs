//! Reads the files of `include`, which have origins, zones and routes.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use super::{Node, absolute};
use crate::FileKind;
use crate::pattern::Pattern;
use crate::tables::plan_keys::LARGEST;
use crate::tables::values;

/// Maximum number of included files.
const MAX_FILES: usize = 1000;

/// An included file.
pub(super) struct Included {
    /// Path for messages: relative if the path of the including file is.
    pub(super) path: PathBuf,
    /// Absolute path of the file's folder.
    pub(super) folder: PathBuf,
    pub(super) text: String,
}

/// Reads the files that `include` of the file at `main` names.
///
/// They are in the order of the list. The files of one pattern are sorted by name.
pub(super) fn read(node: Node, main: &Path) -> Vec<Included> {
    let beside = main.parent().unwrap_or(Path::new(""));
    let mut included: Vec<Included> = Vec::new();
    // A pattern may match the including file itself.
    let itself = absolute(main);
    let mut known = BTreeSet::from([itself.clone()]);
    let items = node.items_or("a list such as [\"conf.d/*.toml\"]");
    for item in items.unwrap_or_default() {
        let is_pattern = item.value.as_str().is_some_and(|name| name.contains('*'));
        let paths = values::text(item).map(|name| files(item, &beside.join(name)));
        for path in paths.unwrap_or_default() {
            let absolute = absolute(&path);
            if !is_pattern && absolute == itself {
                item.report_as_is("this is the file itself; remove it from the list");
            }
            if !known.insert(absolute.clone()) {
                continue;
            }
            if included.len() == MAX_FILES {
                item.wrong(&format!("at most {MAX_FILES} files are included"));
                return included;
            }
            let folder = absolute.parent().unwrap_or(beside).to_owned();
            item.report.add_named_file(absolute, FileKind::Included);
            match values::content(item, &path, LARGEST, "").map(String::from_utf8) {
                Some(Ok(text)) => included.push(Included { path, folder, text }),
                Some(Err(_)) => {
                    let path = item.shown(&path);
                    item.report_as_is(&format!(
                        "{path} is not UTF-8; save the file in that encoding"
                    ));
                }
                None => {}
            }
        }
    }
    included
}

/// Returns the files of one entry in the list.
fn files(item: Node, path: &Path) -> Vec<PathBuf> {
    if let Some(pattern) = Pattern::of(path) {
        item.report
            .add_named_file(absolute(path), FileKind::Included);
        return match pattern.files() {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                item.warn(&format!(
                    "{} does not exist, so nothing is included from it; make the folder, or remove it from the list",
                    item.shown(pattern.folder())
                ));
                Vec::new()
            }
            Err(error) => {
                let folder = item.shown(pattern.folder());
                item.report_as_is(&format!("{folder} cannot be listed: {error}"));
                Vec::new()
            }
        };
    }
    let name = item.value.as_str().unwrap_or_default();
    if name.is_empty() || name.contains('*') {
        item.wrong("expected the name of a file, or one with a * in its last part, such as \"conf.d/*.toml\"");
        return Vec::new();
    }
    vec![path.to_owned()]
}
