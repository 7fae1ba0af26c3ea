//! Reads the files that `include` of the configuration file names, such as `"conf.d/*.toml"`.
//!
//! Only their text is read here. `file` parses it, for origins, zones, tokens and routes.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use super::{Node, absolute};
use crate::FileKind;
use crate::pattern::Pattern;
use crate::tables::plan_keys::MAX_FILE_SIZE;
use crate::tables::values;

/// Maximum number of included files.
const MAX_FILES: usize = 1000;

/// An included file.
pub(super) struct Included {
    /// Path for messages: relative if the path of the including file is.
    pub(super) path: PathBuf,
    /// Absolute path of the file's folder.
    pub(super) folder: PathBuf,
    /// Content of the file.
    pub(super) text: String,
}

/// Reads the files that a list of names and patterns leads to, each file once.
///
/// `node`: the value of `include`. `main`: path of the file with this value. The result has the
/// order of the list. The files of one pattern are sorted by name.
pub(super) fn read(node: Node, main: &Path) -> Vec<Included> {
    let main_folder = main.parent().unwrap_or(Path::new(""));
    let mut included: Vec<Included> = Vec::new();
    // A pattern may match the including file itself, which is then skipped.
    let absolute_main = absolute(main);
    let mut seen = BTreeSet::from([absolute_main.clone()]);
    let items = node.items_or("a list such as [\"conf.d/*.toml\"]");
    for item in items.unwrap_or_default() {
        let Some(name) = values::text(item) else {
            continue;
        };
        let path = main_folder.join(name);
        let pattern = Pattern::parse(&path);
        let paths = match &pattern {
            Some(pattern) => list_files(item, pattern, &path),
            None if name.is_empty() || name.contains('*') => {
                item.report_problem("expected the name of a file, or one with a * in its last part, such as \"conf.d/*.toml\"");
                continue;
            }
            None => vec![path],
        };
        for path in paths {
            let absolute = absolute(&path);
            if pattern.is_none() && absolute == absolute_main {
                item.report_as_is("this is the file itself; remove it from the list");
            }
            if !seen.insert(absolute.clone()) {
                continue;
            }
            if included.len() == MAX_FILES {
                item.report_problem(&format!("at most {MAX_FILES} files are included"));
                return included;
            }
            let folder = absolute.parent().unwrap_or(main_folder).to_owned();
            item.report.add_named_file(absolute, FileKind::Included);
            match values::content(item, &path, MAX_FILE_SIZE, "").map(String::from_utf8) {
                Some(Ok(text)) => included.push(Included { path, folder, text }),
                Some(Err(_)) => {
                    let path = item.show_path(&path);
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

/// Returns the files that match a pattern, and records the pattern as a named file.
///
/// `item`: the value with the pattern, for messages. `path`: the pattern as a path.
fn list_files(item: Node, pattern: &Pattern, path: &Path) -> Vec<PathBuf> {
    item.report
        .add_named_file(absolute(path), FileKind::Included);
    let folder = item.show_path(pattern.folder());
    match pattern.files() {
        Ok(files) => return files,
        Err(error) if error.kind() == io::ErrorKind::NotFound => item.warn(&format!(
            "{folder} does not exist, so nothing is included from it; make the folder, or remove it from the list"
        )),
        Err(error) => item.report_as_is(&format!("{folder} cannot be listed: {error}")),
    }
    Vec::new()
}
