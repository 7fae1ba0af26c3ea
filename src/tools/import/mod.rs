//! Translates an `nginx.conf`, or Ingress objects of Kubernetes, to a `gateway.toml`.
//!
//! The text becomes a tree, and the tree becomes settings and notes. The notes name each line
//! that was not translated.
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

/// The files that an import reads besides the main file. A manifest names none.
pub trait Files {
    /// The content of a file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// The names in a folder; empty if it cannot be read.
    fn list(&self, folder: &Path) -> Vec<String>;

    /// Checks that a certificate and its key can be loaded.
    ///
    /// # Errors
    ///
    /// Returns the reason if they cannot be loaded.
    fn pair(&self, cert: &Path, key: &Path) -> Result<(), String>;
}

/// The result of an import.
#[derive(Debug)]
pub struct Import {
    /// The text of a valid `gateway.toml`; `None` if there is nothing to forward.
    pub settings: Option<String>,
    /// Notes on what the user must check. Each is one line that begins with its file and line.
    /// Those on lost limits come first.
    pub notes: Vec<String>,
    /// How many limits are lost, and what is unlimited for that; `None` if no limit is lost.
    pub loss: Option<String>,
    /// What the input must have to be translated.
    pub subject: &'static str,
}

/// Translates the text of `main`. Includes and certificates are relative to its folder.
pub fn import(main: &Path, text: &[u8], files: &dyn Files) -> Import {
    let (page, mut notes, subject) = if ingress::is_manifest(main, text) {
        let (page, notes) = ingress::translate(main, text);
        (page, notes, "Ingress with a path")
    } else {
        let mut reader = tree::Reader::new(files, main);
        let tree = reader.parse(main, text);
        let has_lua = reader.has_lua;
        let (page, notes) = translate::translate(tree, reader.notes, files, main);
        let page = page.filter(|_| !has_lua);
        (page, notes, "location with a proxy_pass")
    };
    let settings = page.and_then(|page| {
        let checked = config::parse(&page, Path::new("gateway.toml"), false);
        match checked {
            Ok(_) => Some(page),
            Err(problems) => {
                let place = notes::Place::START;
                for problem in problems.problems {
                    let why = problem.message;
                    notes.add(place, format!("cannot be expressed in gateway.toml: {why}"));
                }
                None
            }
        }
    });
    let loss = notes.loss();
    let notes = notes.all();
    Import {
        loss,
        settings: settings.map(|page| with_leftovers(&page, &notes)),
        notes,
        subject,
    }
}

/// Maximum number of routes of the result. Each name of a host multiplies its locations.
const MAX_ROUTES: usize = 5000;

/// How many notes stand in the file. Further ones are only counted there.
const MAX_NOTES: usize = 1000;

/// The settings with the notes that stand at no table of theirs, as comments above the first table.
fn with_leftovers(page: &str, notes: &[String]) -> String {
    let known = page.lines().filter_map(|line| line.strip_prefix("# "));
    let known: HashSet<&str> = known.collect();
    let left = notes.iter().filter(|note| !known.contains(&***note));
    let left: Vec<&String> = left.collect();
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
