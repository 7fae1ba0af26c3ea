//! Translates an `nginx.conf`, or Ingress objects of Kubernetes, to a `gateway.toml`.
//!
//! `tree` parses the text, and `translate` turns the tree into a page: the text of a
//! `gateway.toml`. `ingress` does both for Kubernetes. Notes tell the user which lines were not
//! translated. A limit of the input is lost if the page does not have it.
//!
//! This module reads the disk only through [`Files`], and no input makes it panic.

mod glob;
mod ingress;
mod lexer;
mod notes;
mod translate;
mod tree;
mod values;

#[cfg(test)]
mod properties;

use std::collections::HashSet;
use std::io;
use std::path::Path;

use notes::Notes;

/// File system access of an import. A manifest names no further files.
pub trait Files {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Lists the names in a folder. Returns nothing if the folder cannot be read.
    fn list(&self, folder: &Path) -> Vec<String>;

    /// Checks that a certificate and its key can be loaded.
    ///
    /// # Errors
    ///
    /// Returns the reason if they cannot be loaded.
    fn check_pair(&self, cert: &Path, key: &Path) -> Result<(), String>;
}

/// The result of an import.
pub struct Import {
    /// Text of a valid `gateway.toml`; `None` if there is nothing to forward.
    pub settings: Option<String>,
    /// Notes on what the user must check, one line each, beginning with file and line.
    ///
    /// Notes on lost limits come first.
    pub notes: Vec<String>,
    /// Number of lost limits and the paths that are unlimited as a result; `None` if none is lost.
    pub loss: Option<String>,
    /// Contents that a translatable input must have, for error messages.
    pub subject: &'static str,
}

/// Translates the text of `main`. Includes and certificates are relative to its folder.
pub fn import(main: &Path, text: &[u8], files: &dyn Files) -> Import {
    let notes = Notes::default();
    let start = notes.start_of(main);
    let (page, subject) = if ingress::is_manifest(main, text) {
        (ingress::translate(start, text), "Ingress with a path")
    } else {
        let mut reader = tree::Reader::new(files, main, &notes);
        let tree = reader.parse(main, text);
        let page = translate::translate(tree, files, main);
        // The part that could not be read may have protected something.
        let page = page.filter(|_| !reader.is_incomplete);
        (page, "location with a proxy_pass")
    };
    let valid_page = page.filter(|page| {
        let Err(problems) = config::parse(page, Path::new("gateway.toml"), false) else {
            return true;
        };
        for problem in problems.problems {
            let why = problem.message;
            start.note(format!("cannot be expressed in gateway.toml: {why}"));
        }
        false
    });
    let loss = notes.loss();
    let notes = notes.all();
    Import {
        loss,
        settings: valid_page.map(|page| with_leftovers(&page, &notes)),
        notes,
        subject,
    }
}

/// Maximum number of routes in the result.
///
/// Every name of a server gets its own copy of the server's locations.
const MAX_ROUTES: usize = 5000;

/// Maximum number of notes written to the file. Further notes are only counted there.
const MAX_NOTES: usize = 1000;

/// Adds the notes that are not on the page yet, as comments above its first table.
fn with_leftovers(page: &str, notes: &[String]) -> String {
    // The page has notes as comments at the tables to which they belong.
    let comments = page.lines().filter_map(|line| line.strip_prefix("# "));
    let comments: HashSet<&str> = comments.collect();
    let leftovers = notes.iter().filter(|note| !comments.contains(&***note));
    let leftovers: Vec<&String> = leftovers.collect();
    if leftovers.is_empty() {
        return page.to_owned();
    }
    let mut text = String::from(
        "# Check these lines, too: they were not translated, and belong to no table below.\n",
    );
    for note in leftovers.iter().take(MAX_NOTES) {
        text.extend(["# ", note, "\n"]);
    }
    let more = leftovers.len().saturating_sub(MAX_NOTES);
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
    fn a_note_at_a_table_is_not_repeated_and_the_list_of_notes_is_bounded() {
        let page = "# a.conf:2: b\n[server]\n";
        let notes = ["a.conf:1: a", "a.conf:2: b"].map(str::to_owned);
        let text = with_leftovers(page, &notes);
        assert!(
            text.ends_with(&format!("below.\n# a.conf:1: a\n\n{page}")),
            "{text}"
        );
        assert_eq!(with_leftovers(page, &notes[1..]), page);
        let many: Vec<String> = (0..MAX_NOTES + 3)
            .map(|line| format!("a.conf:{line}: x"))
            .collect();
        let text = with_leftovers(page, &many);
        assert!(text.contains("\n# and 3 more\n"), "{text}");
        // The heading, the notes, the rest as a number, an empty line, and the page.
        assert_eq!(text.lines().count(), 1 + MAX_NOTES + 1 + 1 + 2);
    }
}
